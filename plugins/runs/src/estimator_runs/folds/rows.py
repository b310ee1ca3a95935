"""All rows of an input, each once, in the order of the input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, InputError
from estimator_core.inputs import InputPosition, open_input
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
    read twice. For a user's own iterator, this place is unknown.

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
    source = open_input(input_fn, mode=ModeKeys.EVAL, params=params, config=config)
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
            if not isinstance(columns, Mapping) or isinstance(given, Mapping | None):
                raise ArgumentError("Rows can be taken only from batches of a dict of features and an array of labels.")
            for name, value in {**columns, **host}.items():
                features.setdefault(name, []).append(np.array(value))
            labels.append(np.array(given))
            count += batch.size
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


def _epoch(position: InputPosition) -> int:
    """Returns the number of repetitions of the data before the last row of a batch, if the position contains it."""
    kind, _, facts = position.fingerprint.partition("; ")
    state: Any = position.source_state
    if "." in kind:  # the class of another package, whose state is unknown
        return 0
    if isinstance(state, Mapping):
        return int(state.get("epoch", 0))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    rows = re.search(r"(?:^|; )n=(\d+)(?:;|$)", facts)
    return 0 if rows is None else (int(state) - 1) // int(rows[1])
