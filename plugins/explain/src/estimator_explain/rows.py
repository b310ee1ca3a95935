"""The rows that explanations are computed from, read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.estimator import Estimator
from estimator_core.inputs import Batch, numpy_input_fn, open_input

_LABELS = "labels"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Whole columns, as the input yields them.

    Args:
        features: arrays [rows, ...] by name, strings among them.
        labels: an array [rows, ...], arrays by name, or None.
        batch_size: rows of the first batch.
    """

    features: Mapping[str, np.ndarray]
    labels: Any
    batch_size: int

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(next(iter(self.features.values())))

    def input_fn(self, changed: Mapping[str, np.ndarray] | None = None) -> Callable[..., Any]:
        """An input of these rows, in order, with some columns replaced."""
        features = {**self.features, **(changed or {})}
        return numpy_input_fn(features, self.labels, batch_size=self.batch_size, shuffle=False)


def read_rows(estimator: Estimator, input_fn: Callable[..., Any], limit: int) -> Rows:
    """The first rows of an input.

    Args:
        estimator: its params and config are passed to `input_fn`.
        input_fn: returns batches whose features are a flat dict.
        limit: the largest number of rows.

    Raises:
        ArgumentError: the input is empty, its features are not a flat dict, the shapes of a column differ from batch to
            batch, or there are several processes.
    """
    if jax.process_count() > 1:
        raise ArgumentError("Explanations are computed in one process; this program runs in several.")
    parts: list[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]] = []
    drawn, batch_size = 0, 0
    source = open_input(input_fn, mode="eval", params=estimator.params, config=estimator.config)
    try:
        for batch in source:
            parts.append(_columns(batch))
            batch_size = batch_size or batch.size
            drawn += batch.size
            if drawn >= limit:
                break
    finally:
        source.close()
    if not drawn:
        raise ArgumentError("The input is empty: there are no rows to explain.")
    features = _joined([part[0] for part in parts], limit)
    labels = _joined([part[1] for part in parts], limit)
    bare = labels.get(_LABELS) if set(labels) == {_LABELS} else labels or None
    return Rows(features=features, labels=bare, batch_size=min(batch_size, drawn, limit))


def _columns(batch: Batch) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Features and labels of the examples of a batch by name, text included; bare labels are named "labels"."""
    if not isinstance(batch.features, Mapping) or any(isinstance(part, Mapping) for part in batch.features.values()):
        raise ArgumentError("Explanations need features that are a flat dict of arrays.")
    kept = slice(None) if batch.weights is None else np.flatnonzero(batch.weights)
    features = {str(name): np.asarray(array)[kept] for name, array in batch.features.items()}
    given = batch.labels if isinstance(batch.labels, Mapping) else {_LABELS: batch.labels}
    labels = {str(name): np.asarray(array)[kept] for name, array in given.items() if array is not None}
    for name, text in batch.host.items():
        first, _, rest = name.partition("/")
        of_labels = first == _LABELS and (rest or batch.labels is None)
        (labels if of_labels else features)[(rest or _LABELS) if of_labels else name] = np.asarray(text)[kept]
    return features, labels


def _joined(parts: Sequence[Mapping[str, np.ndarray]], limit: int) -> dict[str, np.ndarray]:
    try:
        return {name: np.concatenate([part[name] for part in parts])[:limit] for name in parts[0]}
    except ValueError:
        uneven = [name for name in parts[0] if len({part[name].shape[1:] for part in parts}) > 1]
        raise ArgumentError(
            f"The shapes of {uneven} differ from batch to batch. Pad them to one length to explain them."
        ) from None
