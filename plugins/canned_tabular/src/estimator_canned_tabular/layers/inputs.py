"""The ids and numbers of columns, from the features on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimator_canned_tabular.columns.numeric import BucketizedColumn, NumericColumn
from estimator_canned_tabular.columns.sequence import SequenceCategoricalColumn
from estimator_canned_tabular.columns.weighted import WeightedCategoricalColumn
from estimator_canned_tabular.host.plan import FeaturePlan, fill_name
from estimator_core.errors import ArgumentError

Features = Mapping[str, Any]


class DeviceIds(NamedTuple):
    """The categories of a batch: ids int32[batch, values] (-1: no value), weights or None, lengths or None."""

    ids: jax.Array
    weights: jax.Array | None
    lengths: jax.Array | None


def ids_of(column: Any, features: Features, plan: FeaturePlan) -> DeviceIds:
    """Returns the ids of a categorical column.

    Raises:
        ArgumentError: the host transform of the plan was not applied to the features.
    """
    if isinstance(column, BucketizedColumn):
        return DeviceIds(_buckets(column, features), None, None)
    output = plan.outputs[column]
    if f"{output}.ids" not in features:
        raise ArgumentError(
            f"Column {column.name!r} has no ids among the features {sorted(features)}. The host transform "
            "of its estimator makes them."
        )
    ids = features[f"{output}.ids"]
    if getattr(column, "missing_bucket", False):
        places = ids if ids.shape[1] else jnp.full((ids.shape[0], 1), -1, ids.dtype)
        ids = with_first(places, column.num_buckets - 1)
    # The type of the column decides, because a feature of the input may have such a name without a column that reads
    # it.
    weights = features[f"{output}.weights"] if isinstance(column, WeightedCategoricalColumn) else None
    lengths = features[f"{output}.lengths"] if isinstance(column, SequenceCategoricalColumn) else None
    return DeviceIds(ids, weights, lengths)


def with_first(ids: jax.Array, value: int) -> jax.Array:
    """Returns the ids. An example without any id has `value` in its first place.

    No value is written along the batch, because jax2onnx does not convert that.
    """
    none = jnp.all(ids < 0, axis=1, keepdims=True)
    return jnp.where(none & (jnp.arange(ids.shape[1]) == 0), value, ids)


def numbers_of(column: NumericColumn, features: Features) -> jax.Array:
    """Returns the normalised values of a numeric column, float32[batch, width].

    Raises:
        ArgumentError: the feature is missing or has another shape.
    """
    if column.key not in features:
        raise ArgumentError(f"Feature {column.key!r} is not in the features dictionary. Found: {sorted(features)}.")
    given = jnp.asarray(features[column.key])
    if given.size != given.shape[0] * column.places:
        raise ArgumentError(
            f"The feature {column.key!r} has shape {given.shape}, but its column has shape {column.shape} per example."
        )
    numbers = given.reshape(given.shape[0], *column.shape).astype(jnp.float32)
    gone = jnp.isnan(numbers)
    if column.missing is not None:
        numbers = jnp.where(gone, _fill(column, features), numbers)
    if column.normalizer_fn is not None:
        numbers = jnp.asarray(column.normalizer_fn(numbers), jnp.float32)
    flat = numbers.reshape(given.shape[0], column.places)
    if column.missing != "indicator":
        return flat
    return jnp.concatenate([flat, gone.reshape(flat.shape).astype(jnp.float32)], axis=1)


def _fill(column: NumericColumn, features: Features) -> Any:
    """Returns the replacement of a missing number."""
    if not isinstance(column.missing, str):
        return column.missing
    learned = features.get(fill_name(column.key))
    if learned is None:
        raise ArgumentError(
            f"The {column.missing} of the feature {column.key!r} is learned only by models with a head: give "
            f"numeric_column({column.key!r}) a number as missing."
        )
    return jnp.asarray(learned).reshape(column.shape)


def _buckets(column: BucketizedColumn, features: Features) -> jax.Array:
    numbers = numbers_of(column.source_column, features)
    boundaries = np.asarray(column.boundaries, np.float32)
    # The same as searchsorted(side="right"), whose tracing takes ten times as long. NaN is above all boundaries in
    # both.
    buckets = jnp.sum(~(numbers[..., None] < boundaries), axis=-1, dtype=jnp.int32)
    return buckets + jnp.arange(numbers.shape[1], dtype=jnp.int32) * (len(boundaries) + 1)
