"""Combines the weights of a metric with its values and with padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from estimator_core._metrics.example_weights import example_weights, mask_for_metrics
from estimator_core.errors import ArgumentError

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike


def fit_weights(weights: ArrayLike, shape: tuple[int, ...], *, metric: str) -> Array:
    """Reshapes `weights` to the rank of the values, as float32.

    [batch], [batch, 1] and [batch, n] all fit values of [batch, n].

    Args:
        weights: a scalar, or an array with the leading axes of `shape`, each of the same size or 1. One more axis of
            size 1 may follow.
        shape: the shape of the values.
        metric: the name of the metric in error messages.

    Raises:
        ArgumentError: the weights do not fit.

    Example:
        >>> import numpy as np
        >>> from estimator_core._metrics.weighting import fit_weights
        >>> fit_weights(np.ones(3), (3, 2), metric="mean").shape
        (3, 1)
    """
    array = jnp.asarray(weights, jnp.float32)
    given = array.shape
    if array.ndim == len(shape) + 1 and given[-1] == 1:
        array = array[..., 0]
    if array.ndim <= len(shape):
        array = array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
        if all(size in (1, wanted) for size, wanted in zip(array.shape, shape, strict=True)):
            return array
    raise ArgumentError(
        f"{metric}: weights of shape {given} do not fit values of shape {shape}. Pass one weight per example "
        "or per value."
    )


def padding_mask(shape: tuple[int, ...], *, metric: str) -> Array | None:
    """Returns the mask of a padded batch, as booleans that broadcast against `shape`; None without padding or for shape
    ().

    Raises:
        ArgumentError: the leading axis is not the batch.
    """
    return _fitted_mask(example_weights(), shape, metric)


def _fitted_mask(mask: Array | None, shape: tuple[int, ...], metric: str) -> Array | None:
    if mask is None or not shape:
        return None
    if mask.shape[0] != shape[0]:
        raise ArgumentError(
            f"{metric}: this batch is padded to {mask.shape[0]} rows, but the values have shape {shape}, so the "
            "padding cannot be left out. Keep the batch as the leading axis of every array that a metric receives "
            "(reshape a flattened one)."
        )
    return (mask > 0).reshape((-1,) + (1,) * (len(shape) - 1))


def weigh(shape: tuple[int, ...], weights: ArrayLike | None, *, metric: str) -> tuple[Array, bool]:
    """Returns the effective weight of every value of a metric, from user weights and padding together.

    Whether counts are exact integers depends only on `weights`, never on padding, so the structure of a metric stays
    the same.

    Returns:
        The weights, with exactly `shape`: bool if `weights` is None, otherwise float32. And whether they are counts.
    """
    mask = _fitted_mask(mask_for_metrics(), shape, metric)
    if weights is None:
        return jnp.broadcast_to(jnp.ones((), bool) if mask is None else mask, shape), True
    fitted = fit_weights(weights, shape, metric=metric)
    if mask is not None:
        fitted = jnp.where(mask, fitted, 0.0)
    return jnp.broadcast_to(fitted, shape), False


def same_shape(labels: ArrayLike, predictions: ArrayLike, *, metric: str) -> tuple[Array, Array]:
    """Brings labels and predictions to one shape.

    A trailing axis of size 1 on only one side is dropped. Nothing is broadcast.

    Raises:
        ArgumentError: the shapes differ.

    Example:
        >>> import numpy as np
        >>> from estimator_core._metrics.weighting import same_shape
        >>> labels, predictions = same_shape(np.zeros((4, 1)), np.zeros(4), metric="accuracy")
        >>> labels.shape
        (4,)
    """
    left, right = jnp.asarray(labels), jnp.asarray(predictions)
    given = left.shape, right.shape
    if left.ndim == right.ndim + 1 and left.shape[-1] == 1:
        left = left[..., 0]
    elif right.ndim == left.ndim + 1 and right.shape[-1] == 1:
        right = right[..., 0]
    if left.shape != right.shape:
        raise ArgumentError(
            f"{metric}: labels of shape {given[0]} and predictions of shape {given[1]} do not match. "
            "They would broadcast into pairs of different examples; give both the same shape."
        )
    return left, right
