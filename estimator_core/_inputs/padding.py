"""Padding of ragged batches, only where the input asks for it, and the mask that says which rows are examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from estimator_core._inputs.normalise import Parts
from estimator_core._inputs.options import InputOptions
from estimator_core.errors import InputError

#: A feature of this name marks the real rows of a batch that the input padded itself (BERT's convention).
IS_REAL_EXAMPLE = "is_real_example"


class Mask(NamedTuple):
    """A batch after padding.

    Attributes:
        parts: the batch, padded.
        weights: float32[rows], 1 for an example and 0 for padding; None where the input never pads.
        size: examples, without padding.
    """

    parts: Parts
    weights: np.ndarray | None
    size: int


def unpadded(parts: Parts) -> Mask:
    """The mask of an input that never pads."""
    return Mask(parts, None, parts.rows)


def masking(options: InputOptions, first: Parts) -> Callable[[Parts], Mask]:
    """How batches of the input with this first batch are padded and masked."""
    if isinstance(first.features, Mapping) and IS_REAL_EXAMPLE in first.features:
        return _declared
    if options.ragged == "pad":
        rows = options.batch_size or first.rows
        ones = np.ones(rows, np.float32)
        return lambda parts: Mask(parts, ones, rows) if parts.rows == rows else _padded(parts, rows)
    return unpadded


def _declared(parts: Parts) -> Mask:
    real = parts.features[IS_REAL_EXAMPLE]
    weights = np.asarray(real, np.float32).reshape(-1)
    if weights.shape != (parts.rows,) or not np.isin(weights, (0.0, 1.0)).all():
        raise InputError(
            f"feature '{IS_REAL_EXAMPLE}' must hold a 0 or 1 for each of the batch's {parts.rows} examples, given: "
            f"{real!s:.120}."
        )
    return Mask(parts, weights, int(weights.sum()))


def _padded(parts: Parts, rows: int) -> Mask:
    if parts.rows > rows:
        raise InputError(
            f'A batch has {parts.rows} examples, more than the {rows} that ragged="pad" fills up to. Give the largest '
            "batch size as batch_size."
        )
    missing = rows - parts.rows

    def fill(array: np.ndarray) -> np.ndarray:
        # copies of the last example: any value that a real example has is safe for logarithms and divisions
        return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if array.ndim else array

    features, labels = jax.tree.map(fill, (parts.features, parts.labels))
    host = {name: fill(array) for name, array in parts.host.items()}
    weights = np.zeros(rows, np.float32)
    weights[: parts.rows] = 1.0
    return Mask(Parts(features, labels, host, rows), weights, parts.rows)
