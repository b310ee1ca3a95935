"""All rows of an input, each once, in the order of the input."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, InputError
from estimator_core.inputs import InputPosition, open_input, with_transforms
from estimator_core.modes import ModeKeys


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows in memory.

    Args:
        features: the arrays by name. Each has one row per example.
        labels: the labels, [rows, ...].
    """

    features: Mapping[str, np.ndarray]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, chosen: np.ndarray) -> Rows:
        """Returns some of the rows by their numbers."""
        return Rows(features={name: value[chosen] for name, value in self.features.items()}, labels=self.labels[chosen])


def read_rows(input_fn: Callable[..., Any], *, params: Any = None, config: Any = None, most: int | None = None) -> Rows:
    """Reads an input to its end, or its first rows.

    An input of arrays or files that repeats its data is read up to the last batch before the repetition, so no row is
    read twice. For a user's own iterator, this place is unknown. Rows that only fill up a batch (`ragged="pad"`, or
    a feature `is_real_example` that is 0) are left out. Integers of 64 bits stay as they are, because a host transform
    may consume them.

    Args:
        input_fn: an input_fn that yields batches of a dict of features and an array of labels.
        params: the params that the input_fn receives.
        config: the RunConfig that the input_fn receives.
        most: the number of rows to read; None: all. An input that never ends needs it.

    Raises:
        ArgumentError: the input is empty, its batches have another form, it never ends and `most` is None, or its data
            have fewer rows than a batch.

    Example:
        >>> rows = read_rows(lambda: [({"x": np.ones((2, 1), np.float32)}, np.zeros(2, np.int32))])
        >>> len(rows), sorted(rows.features)
        (2, ['x'])
    """
    features: dict[str, list[np.ndarray]] = {}
    labels: list[np.ndarray] = []
    count = 0
    wide = _WideIntegers()
    seen = with_transforms(input_fn, features=[wide])
    source = open_input(seen, mode=ModeKeys.EVAL, params=params, config=config)
    try:
        for batch in source:
            if source.endless and most is None:
                raise ArgumentError(
                    "The input never ends (num_epochs=None), so not all of it can be read. Give it num_epochs=1, or "
                    "say how many rows are read (`estimator budget data`: --rows)."
                )
            if _epoch(batch.position):
                break
            columns: Any = batch.features
            host = dict(batch.host)
            given: Any = host.pop("labels", None) if batch.labels is None else batch.labels  # words stay on the host
            if not wide.is_flat or not isinstance(columns, Mapping) or isinstance(given, Mapping | None):
                raise ArgumentError(
                    "Rows can be taken only from batches of a flat dict of features and an array of labels."
                )
            kept = slice(None) if batch.weights is None else np.flatnonzero(batch.weights)
            for name, value in {**columns, **host, **wide.batches.popleft()}.items():
                features.setdefault(name, []).append(np.array(value)[kept])
            labels.append(np.array(given)[kept])
            count += len(labels[-1])
            if most is not None and count >= most:
                break
    except InputError as error:
        raise ArgumentError(f"The input cannot be read as rows: {error}") from error
    finally:
        source.close()
    if not labels:
        raise ArgumentError(
            "The input is empty: it has no rows."
            if source.position is None or not source.position.batches
            else "The input begins again within its first batch. Give it num_epochs=1, or smaller batches."
        )
    return Rows(
        features={name: np.concatenate(parts)[:most] for name, parts in features.items()},
        labels=np.concatenate(labels)[:most],
    )


class _WideIntegers:
    """A host transform that keeps integers that devices cannot hold, and passes zeros on."""

    name, version = "wide integers", 1

    def __init__(self) -> None:
        self.batches: deque[dict[str, np.ndarray]] = deque()
        self.is_flat = True

    def config(self) -> dict[str, Any]:
        """Returns no arguments."""
        return {}

    @property
    def files(self) -> Mapping[str, Path]:
        """Returns no files."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Keeps a copy of each array that does not fit into 32 bits."""
        if not all(isinstance(array, np.ndarray) and array.ndim for array in batch.values()):
            self.is_flat = False
            return {}
        found = {name: np.array(array) for name, array in batch.items() if _is_wide(array)}
        self.batches.append(found)
        return {**batch, **{name: np.zeros(array.shape, np.int32) for name, array in found.items()}}


def _is_wide(array: np.ndarray) -> bool:
    if array.dtype.kind not in "iu" or not array.size:
        return False
    limits = np.iinfo(np.int32)
    return bool(array.min() < limits.min or array.max() > limits.max)


def _epoch(position: InputPosition) -> int:
    """Returns the number of repetitions of the data before the last row of a batch, if the position contains it."""
    kind, _, facts = position.fingerprint.partition("; ")
    state: Any = position.source_state
    if "." in kind:  # the class of another package, whose state is unknown
        return 0
    if isinstance(state, Mapping):
        return int(state.get("epoch", 0))
    rows = re.search(r"(?:^|; )n=(\d+)(?:;|$)", facts)
    return 0 if rows is None else (int(state) - 1) // int(rows[1])
