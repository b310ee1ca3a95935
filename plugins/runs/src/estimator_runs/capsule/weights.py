"""The comparison of the weights of two checkpoints, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from estimator_core.checkpoint import load_variables


def first_difference(before: Path, now: Path) -> str | None:
    """Returns the first variable in which two checkpoints differ, in words; None: they are equal bit for bit.

    Args:
        before: a checkpoint.
        now: another one.

    Raises:
        CheckpointCorruptError: one of them is damaged.
    """
    old, new = load_variables(before), load_variables(now)
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            return f"variable {name!r} is in only one of them"
        first, second = old[name], new[name]
        if (first.dtype, first.shape) != (second.dtype, second.shape):
            return f"variable {name!r} was {first.dtype}{first.shape}, now {second.dtype}{second.shape}"
        if first.tobytes() != second.tobytes():
            return f"variable {name!r}: {_places(first, second)}"
    return None


def _places(first: np.ndarray, second: np.ndarray) -> str:
    size = first.dtype.itemsize
    rows = [np.frombuffer(one.tobytes(), np.uint8).reshape(-1, size) for one in (first, second)]
    changed = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    place = tuple(int(one) for one in np.unravel_index(changed[0], first.shape))
    return (
        f"{len(changed)} of {first.size} values differ, the first at {place}: was {first[place]}, now {second[place]}"
    )
