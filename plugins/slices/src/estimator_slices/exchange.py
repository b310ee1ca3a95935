"""Exchanges the slice keys of a batch among the processes that drew it, so that all of them know all keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from estimator_slices.keys import Drawn


def global_keys(drawn: Drawn | None, part: tuple[int, int], rows: int, own: Sequence[int] | None) -> Drawn:
    """Returns the keys of a batch of all processes, in its row order on the devices. They are the same everywhere.

    Args:
        drawn: the keys that this process drew. None: its input has ended.
        part: the part of the input that this process draws, and the number of parts. With one part, nothing is
            exchanged. Processes with the same part draw the same rows.
        rows: the number of rows of the batch on the devices.
        own: the rows that were drawn here, if rows of a batch are assigned to processes. Empty: every process drew all
            rows. None: the input divides itself, and its parts follow each other.
    """
    if part[1] == 1:
        assert drawn is not None, "a batch was drawn somewhere"
        return whole_batch([drawn], rows)
    keys = None if drawn is None else _to_json(drawn)
    told = _gathered(json.dumps({"part": part[0], "drawn": keys, "own": None if own is None else list(map(int, own))}))
    by_part = {each["part"]: each for each in map(json.loads, told)}
    present = [each for _, each in sorted(by_part.items()) if each["drawn"] is not None]
    parts = [_from_json(each["drawn"]) for each in present]
    if own is None:
        return whole_batch(parts, rows)
    if not own:
        return whole_batch(parts[:1], rows)
    order = np.argsort([row for each in present for row in each["own"]], kind="stable")
    values, codes, groups, real = whole_batch(parts, rows)
    return Drawn(values, [each[order] for each in codes], groups[order], real[order])


def whole_batch(parts: Sequence[Drawn], rows: int) -> Drawn:
    """Returns the parts as one, in the row order of the batch on the devices, where padding follows each part.

    Args:
        parts: the parts, at least one.
        rows: the number of rows of the batch on the devices.
    """
    own = [len(part.real) for part in parts]
    # If batches are padded, all parts have the same number of rows.
    sizes = own if sum(own) == rows else [rows // len(parts)] * len(parts)
    values: list[list[list[Any]]] = []
    codes: list[np.ndarray[Any, np.dtype[np.int32]]] = []
    for crossing in range(len(parts[0].values)):
        of_parts = [part.values[crossing] for part in parts]
        offsets = np.cumsum([0, *map(len, of_parts)])
        values.append([value for each in of_parts for value in each])
        codes.append(
            np.concatenate(
                [_filled(p.codes[crossing] + o, n) for p, o, n in zip(parts, offsets, sizes, strict=False)]
            ).astype(np.int32)
        )
    groups = np.concatenate([_filled(part.groups, size) for part, size in zip(parts, sizes, strict=True)])
    real = np.concatenate([_filled(part.real, size) for part, size in zip(parts, sizes, strict=True)])
    return Drawn(values, codes, groups.astype(np.int32), real.astype(bool))


def _filled(array: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
    return np.concatenate([array, np.zeros(rows - len(array), array.dtype)])


def _to_json(drawn: Drawn) -> list[Any]:
    codes = [each.tolist() for each in drawn.codes]
    return [drawn.values, codes, drawn.groups.tolist(), drawn.real.tolist()]


def _from_json(value: list[Any]) -> Drawn:
    values, codes, groups, real = value
    return Drawn(values, [np.array(each, np.int32) for each in codes], np.array(groups, np.int32), np.array(real, bool))


def _gathered(text: str) -> list[str]:
    """Returns the texts of all processes, in their order."""
    from jax.experimental import multihost_utils

    raw = np.frombuffer(text.encode(), np.uint8)
    sizes = np.asarray(multihost_utils.process_allgather(np.array(len(raw), np.int32))).reshape(-1)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: len(raw)] = raw
    everything = np.asarray(multihost_utils.process_allgather(padded)).reshape(jax.process_count(), -1)
    return [bytes(row[:size]).decode() for row, size in zip(everything, sizes, strict=True)]
