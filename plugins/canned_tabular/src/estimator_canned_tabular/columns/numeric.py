"""Columns of unchanged numbers, and of numbers in buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan, prod
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.checks import check_key, check_shape
from estimator_canned_tabular.columns.contract import HostIds
from estimator_canned_tabular.columns.dtypes import FLOAT32, STRING, dtype_name
from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.host.number_rule import LEARNED
from estimator_canned_tabular.host.values import numbers_of
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import FixedLenFeature


@dataclass(frozen=True)
class NumericColumn:
    """The record that `numeric_column` returns."""

    key: str
    shape: tuple[int, ...] = (1,)
    default_value: Any = None
    dtype: str = FLOAT32
    normalizer_fn: Callable[[Any], Any] | None = None
    missing: str | float | None = None

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def places(self) -> int:
        """The number of values of one example."""
        return prod(self.shape)

    @property
    def width(self) -> int:
        """The number of values per example that the model receives, twice as many with an indicator."""
        return self.places * (2 if self.missing == "indicator" else 1)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A feature of a fixed shape. If the column allows missing numbers, a record may lack it."""
        default = self.default_value
        if default is None and self.missing is not None and np.dtype(self.dtype).kind == "f":
            default = (float("nan"),) * self.places
        return {self.key: FixedLenFeature(self.shape, self.dtype, default)}


def numeric_column(
    key: str,
    shape: int | Sequence[int] = (1,),
    default_value: Any = None,
    dtype: Any = FLOAT32,
    normalizer_fn: Callable[[Any], Any] | None = None,
    *,
    missing: str | float | None = None,
) -> NumericColumn:
    """Reads a feature of numbers, which must be finite unless `missing` sets a replacement for NaN and None.

    Args:
        key: the name of the feature.
        shape: the shape of one example.
        default_value: the value for tf.Examples that lack the feature: a number, or one for each place.
        dtype: the dtype of the feature in a tf.Example. The column itself is float32.
        normalizer_fn: a function of jax arrays, `[batch, *shape]` to the same shape. It runs on the device, after
            missing numbers are replaced.
        missing: the replacement of missing numbers: a number, "mean", "median" or "indicator". Mean and median are
            learned from the training data before the first step, and kept in checkpoints and exports. "indicator" uses
            the mean, and adds a value that is 1 where a number is missing. None: a missing number is refused.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Example:
        >>> numeric_column("age").name
        'age'

    Source: `tf.feature_column.numeric_column`.
    """
    sizes = check_shape(shape, check_key(key))
    name = dtype_name(dtype, key)
    if name == STRING or np.dtype(name).kind not in "iuf":
        raise ArgumentError(f"dtype must be convertible to float. dtype: {name}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise ArgumentTypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return NumericColumn(key, sizes, _default(default_value, sizes, key), name, normalizer_fn, _missing(missing, key))


def _missing(value: Any, key: str) -> str | float | None:
    if value is None or (isinstance(value, str) and value in LEARNED):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    raise ArgumentError(f"missing must be a finite number or one of {LEARNED}. missing: {value!r}, key: {key}")


def _default(value: Any, shape: tuple[int, ...], key: str) -> Any:
    if value is None:
        return None
    try:
        filled = np.broadcast_to(np.asarray(value, np.float64), shape)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"The shape of default_value must be equal to given shape. default_value: {value}, shape: {shape}, "
            f"column_name: {key}"
        ) from error
    return tuple(filled.reshape(-1).tolist())


@dataclass(frozen=True)
class BucketizedColumn:
    """The record that `bucketized_column` returns."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        """The key with `_bucketized`."""
        return f"{self.source_column.name}_bucketized"

    @property
    def key(self) -> str:
        """The feature's name."""
        return self.source_column.key

    @property
    def keys(self) -> tuple[str, ...]:
        """The feature's name."""
        return (self.source_column.key,)

    @property
    def num_buckets(self) -> int:
        """The number of buckets of all places together."""
        return (len(self.boundaries) + 1) * self.source_column.places

    @property
    def width(self) -> int:
        """The number of buckets."""
        return self.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features of the numeric column."""
        return self.source_column.parse_example_spec

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Buckets on the host, for crosses and weights; otherwise the device computes them.

        Raises:
            FeatureColumnError: a number is missing, and nothing replaces it. Another column may accept it.
        """
        numbers = numbers_of(batch, self.source_column.key, self.name, self.source_column.places)
        if isinstance(self.source_column.missing, float):
            numbers = np.nan_to_num(numbers, nan=self.source_column.missing)
        elif (gone := np.isnan(numbers).any(axis=1)).any():
            raise FeatureColumnError(
                f"Feature {self.key!r} holds nan in row {int(np.argmax(gone))}: it is missing, and {self.name!r} is "
                f"crossed or weighted. Give the numeric_column({self.key!r}) of these buckets a number as missing."
            )
        buckets = np.searchsorted(np.asarray(self.boundaries, np.float32), numbers, side="right")
        offsets = np.arange(self.source_column.places) * (len(self.boundaries) + 1)
        ids = buckets + offsets
        return HostIds(ids, None, np.full(len(ids), ids.shape[1]))


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """Divides numbers into buckets: bucket i holds `[boundaries[i - 1], boundaries[i])`.

    Args:
        source_column: a `numeric_column` with one axis.
        boundaries: increasing numbers.

    Raises:
        ArgumentError: the column is of another kind, or the boundaries do not increase.

    Example:
        >>> bucketized_column(numeric_column("age"), [18, 65]).num_buckets
        3

    Source: `tf.feature_column.bucketized_column`.
    """
    if not isinstance(source_column, NumericColumn):
        raise ArgumentError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ArgumentError(f"source_column must be one-dimensional column. Given: {source_column}")
    if source_column.missing == "indicator":
        raise ArgumentError(
            f"Buckets hold only numbers: give numeric_column({source_column.key!r}) missing='mean', 'median' or a "
            "number. To tell the model which numbers were missing, add a feature of your own."
        )
    numbers = tuple(float(boundary) for boundary in boundaries)
    if not numbers:
        raise ArgumentError("boundaries must not be empty.")
    if any(map(isnan, numbers)):
        raise ArgumentError(f"boundaries must be numbers. Given: {list(boundaries)}")
    if any(low >= high for low, high in pairwise(numbers)):
        raise ArgumentError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, numbers)
