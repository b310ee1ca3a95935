"""Checks of shapes and ranges of logits, labels and weights, with the messages of tf.estimator where they exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.metrics import padding_mask

NO_LABELS = (
    "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that your data contains "
    "your label feature. Check that your input_fn properly parses and returns labels. Strings never reach the model: "
    "if the labels are strings, give the head label_vocabulary=[...] and the Estimator "
    "label_transforms=head.label_transforms(), which turns them into ids."
)


@runtime_checkable
class NumericColumn(Protocol):
    """A numeric feature column: a feature and its normalization."""

    @property
    def key(self) -> str:
        """The name of the feature."""
        ...

    @property
    def normalizer_fn(self) -> Any:
        """A function of the array, or None."""
        ...


def check_logits(logits: Any, dimension: int) -> jax.Array:
    """Returns the logits as float32 [D0, ..., DN, dimension].

    Raises:
        ArgumentError: the rank is below 2, or the last axis has another size.

    Example:
        >>> import numpy as np
        >>> check_logits(np.zeros((4, 3)), 3).dtype
        dtype('float32')
    """
    array = jnp.asarray(logits, jnp.float32)
    if array.ndim < 2:
        raise ArgumentError(
            f"logits must have rank at least 2. Received rank {array.ndim}, shape {array.shape}. "
            "Shape them [batch, logits_dimension]."
        )
    if array.shape[-1] != dimension:
        raise ArgumentError(
            f"logits shape must be [D0, D1, ... DN, logits_dimension], got {array.shape}. "
            f"This head expects a last axis of size {dimension}."
        )
    return array


def check_labels(labels: Any, logits: jax.Array, dimension: int) -> jax.Array:
    """Returns labels as [D0, ..., DN, dimension], matching the logits.

    If `dimension` is 1, a missing last axis is added.

    Raises:
        ArgumentError: there are no labels, they are not numbers, or their shape does not match.
    """
    if labels is None:
        raise ArgumentError(NO_LABELS)
    array = as_numbers(labels)
    if array.ndim == logits.ndim - 1:
        array = array[..., None]
    expected = (*logits.shape[:-1], dimension)
    if array.ndim < 2:
        raise ArgumentError(f"labels must have rank at least 2. Received rank {array.ndim}, shape {array.shape}.")
    if array.shape[-1] != dimension:
        raise ArgumentError(
            f"Mismatched label shape. Expected labels dimension={dimension}. Received {array.shape[-1]}. Suggested "
            "Fix: If your classifier expects one-hot encoding label, check your n_classes argument to the estimator "
            "and/or the shape of your label. Otherwise, check the shape of your label."
        )
    if array.shape != expected:
        raise ArgumentError(
            f"labels shape must be [D0, D1, ... DN, {dimension}]. Suggested Fix: check your n_classes argument to the "
            f"head and/or the shape of your label. Expected labels shape: {expected}. Labels shape: {array.shape}."
        )
    return array


def as_numbers(labels: Any) -> jax.Array:
    """Returns labels as an array of numbers.

    Raises:
        ArgumentError: the labels are strings.
    """
    if not isinstance(labels, jax.Array) and np.asarray(labels).dtype.kind in "OSU":
        raise ArgumentError(
            "Labels are strings, but the head has no label_vocabulary. Give it one, or labels as class ids."
        )
    return jnp.asarray(labels)


def check_label_range(labels: jax.Array, n_classes: int, message: str | None = None) -> jax.Array:
    """Returns whether each label is in [0, n_classes), as booleans of the same shape.

    Concrete labels are checked at once. A trace cannot raise an error, so the head sets the loss of such an example to
    NaN, which stops training.

    Raises:
        ArgumentError: a concrete label is out of range.
    """
    valid = (labels >= 0) & (labels <= n_classes - 1)
    if not isinstance(valid, Tracer):
        mask = padding_mask(labels.shape, metric="labels")
        counted = np.asarray(valid) if mask is None else np.asarray(valid | ~mask)
        if not counted.all():
            wrong = np.asarray(labels)[~counted].ravel()[0]
            text = "Labels must be >= 0" if wrong < 0 else f"Labels must be <= {n_classes} - 1"
            raise ArgumentError(f"{message or text}. Given: {wrong}.")
    return valid


def read_weights(
    features: Mapping[str, Any] | None, weight_column: Any, logits: jax.Array, *, per_logit: bool = False
) -> jax.Array | None:
    """Returns the example weights as float32 [D0, ..., DN, 1], or None without a weight column.

    With `per_logit`, weights with the shape of the logits are also accepted.

    Raises:
        ArgumentError: the feature is missing, is not numeric, or does not match the logits.
        ArgumentTypeError: `weight_column` is neither a name nor a numeric column.
    """
    if weight_column is None:
        return None
    key, normalizer = _column(weight_column)
    if features is None or key not in features:
        raise ArgumentError(
            f"The weight column {key!r} is not among the features. Found: {sorted(features or {})}. "
            "Return it from input_fn, or drop weight_column."
        )
    raw = features[key]
    if not isinstance(raw, jax.Array) and np.asarray(raw).dtype.kind not in "fiub":
        raise ArgumentError(
            f"Weight column should be castable to float. Given dtype: {np.asarray(raw).dtype} (feature {key!r})."
        )
    weights = jnp.asarray(raw)
    if normalizer is not None:
        weights = jnp.asarray(normalizer(weights))
    weights = weights.astype(jnp.float32)
    if weights.ndim == logits.ndim - 1:
        weights = weights[..., None]
    fits = weights.shape == (*logits.shape[:-1], 1) or (per_logit and weights.shape == logits.shape)
    if not fits:
        allowed = "[D0, D1, ... DN], [D0, D1, ... DN, 1] or [D0, D1, ... DN, logits_dimension]"
        if not per_logit:
            allowed = "[D0, D1, ... DN] or [D0, D1, ... DN, 1]"
        raise ArgumentError(
            f"weights shape must be {allowed}, logits_shape: {logits.shape}. weights_shape: {weights.shape}."
        )
    return weights


def check_thresholds(thresholds: Any) -> tuple[float, ...]:
    """Returns the thresholds as a tuple.

    Raises:
        ArgumentError: a threshold is outside (0, 1), or the thresholds are not a list.
    """
    given: Any = () if thresholds is None else thresholds
    alone = isinstance(given, str) or (isinstance(given, np.ndarray) and given.ndim == 0)
    if alone or not isinstance(given, Iterable):
        raise ArgumentError(f"thresholds must be a list, such as [0.3, 0.5]. Given: {thresholds!r}.")
    values = tuple(map(float, given))
    if any(not 0.0 < value < 1.0 for value in values):
        raise ArgumentError(f"thresholds must be in (0, 1) range. Given: {values}.")
    return values


def check_prediction_keys(keys: Any, valid: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the requested keys, or all keys.

    Raises:
        ArgumentError: the head does not have a key.
    """
    for key in keys or ():
        if key not in valid:
            raise ArgumentError(
                f"Prediction key must be in PredictionKeys, given: {key}. Valid prediction keys include {list(valid)}."
            )
    return tuple(keys) if keys else valid


def _column(weight_column: Any) -> tuple[str, Any]:
    if isinstance(weight_column, str):
        return weight_column, None
    if isinstance(weight_column, NumericColumn):
        return weight_column.key, weight_column.normalizer_fn
    raise ArgumentTypeError(
        "Weight column must be either a string or a numeric column (with key and normalizer_fn). "
        f"Given type: {type(weight_column)}."
    )
