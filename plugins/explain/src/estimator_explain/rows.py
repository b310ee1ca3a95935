"""The rows that explanations are computed from, read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.estimator import Estimator
from estimator_core.inputs import numpy_input_fn, open_input, with_transforms

_LABELS = "labels"
#: A feature of this name marks the rows that are not padding, in batches that the input padded itself.
IS_REAL_EXAMPLE = "is_real_example"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The complete columns of the input.

    Args:
        features: the arrays [rows, ...] by name. Strings are allowed.
        labels: an array [rows, ...], arrays by name, or None.
        batch_size: the number of rows of the first batch.
    """

    features: Mapping[str, np.ndarray]
    labels: Any
    batch_size: int

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(next(iter(self.features.values())))

    def input_fn(self, changed: Mapping[str, np.ndarray] | None = None) -> Callable[..., Any]:
        """Returns an input of these rows, in order, with some columns replaced."""
        features = {**self.features, **(changed or {})}
        return numpy_input_fn(features, self.labels, batch_size=self.batch_size, shuffle=False)


def read_rows(estimator: Estimator, input_fn: Callable[..., Any], limit: int) -> Rows:
    """Returns the first rows of an input, without padding.

    Args:
        estimator: the Estimator, whose params and config are passed to `input_fn`.
        input_fn: a function that returns batches whose features are a flat dict.
        limit: the largest number of rows.

    Raises:
        ArgumentError: the input is empty, its features are not a flat dict, the shapes of a column differ from batch to
            batch, or there are several processes.
    """
    if _in_several_processes(estimator):
        raise ArgumentError(
            "Explanations are computed in one process; this program runs in several. Explain the model_dir in a "
            "separate process, with JAX_NUM_PROCESSES=1 or RunConfig(processes=None)."
        )
    features, labels = _Seen(), _Seen()
    seen = with_transforms(input_fn, features=[features], labels=[labels])
    source = open_input(seen, mode="eval", params=estimator.params, config=estimator.config)
    kept: list[Any] = []
    drawn, batch_size, by_name = 0, 0, False
    try:
        for batch in source:
            if not isinstance(batch.features, Mapping) or features.is_nested:
                raise ArgumentError("Explanations need features that are a flat dict of arrays.")
            kept.append(slice(None) if batch.weights is None else np.flatnonzero(batch.weights))
            by_name = isinstance(batch.labels, Mapping)
            batch_size = batch_size or batch.size
            drawn += batch.size
            if drawn >= limit:
                break
    finally:
        source.close()
    if not drawn:
        raise ArgumentError("The input is empty: there are no rows to explain.")
    given = labels.rows(kept, limit) if labels.batches else None
    return Rows(
        features=features.rows(kept, limit),
        labels=given if by_name or given is None else given[_LABELS],
        batch_size=min(batch_size, drawn, limit),
    )


def _in_several_processes(estimator: Estimator) -> bool:
    """Returns whether the run has several processes. It does not call jax before jax is connected."""
    group = estimator.config.process_group
    return (group is not None and group.count > 1) or (jax.distributed.is_initialized() and jax.process_count() > 1)


class _Seen:
    """A host transform that stores batches as the input yields them, with all bits, and with strings."""

    name, version = "explained rows", 1

    def __init__(self) -> None:
        self.batches: list[Mapping[str, Any]] = []

    def config(self) -> dict[str, Any]:
        """Returns no arguments."""
        return {}

    @property
    def files(self) -> Mapping[str, Path]:
        """Returns no files."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Stores a copy, because the input may reuse its arrays. Zeros replace values that devices cannot hold."""
        self.batches.append({str(name): jax.tree.map(np.array, part) for name, part in batch.items()})
        return {name: jax.tree.map(_as_zeros, part) for name, part in batch.items()}

    @property
    def is_nested(self) -> bool:
        """Whether a part of the newest batch is not a single array."""
        return not all(isinstance(part, np.ndarray) for part in self.batches[-1].values())

    def rows(self, kept: Sequence[Any], limit: int) -> dict[str, np.ndarray]:
        """Returns the complete columns of the examples that are kept of each batch."""
        parts = [
            {name: array[rows] for name, array in batch.items()} for batch, rows in zip(self.batches, kept, strict=True)
        ]
        try:
            return {name: np.concatenate([part[name] for part in parts])[:limit] for name in parts[0]}
        except ValueError:
            uneven = [name for name in parts[0] if len({part[name].shape[1:] for part in parts}) > 1]
            raise ArgumentError(
                f"The shapes of {uneven} differ from batch to batch. Pad them to one length to explain them."
            ) from None


def _as_zeros(array: np.ndarray) -> np.ndarray:
    return np.zeros(array.shape, np.int32) if array.dtype.kind in "iu" and array.dtype.itemsize == 8 else array
