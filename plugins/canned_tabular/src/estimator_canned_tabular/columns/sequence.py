"""Columns of sequences, which have a value for each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.checks import check_key, check_shape
from estimator_canned_tabular.columns.contract import HostIds
from estimator_canned_tabular.columns.dtypes import FLOAT32, STRING, dtype_name
from estimator_canned_tabular.columns.hashed import categorical_column_with_hash_bucket
from estimator_canned_tabular.columns.identity import categorical_column_with_identity
from estimator_canned_tabular.columns.vocabulary import (
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from estimator_canned_tabular.host.values import check_finite, feature_of, numbers_of
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import VarLenFeature


@dataclass(frozen=True)
class SequenceCategoricalColumn:
    """A column with one category per step. `sequence_categorical_column_with_...` returns it."""

    categorical_column: Any

    @property
    def name(self) -> str:
        """The column's name."""
        return self.categorical_column.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The features of the column."""
        return self.categorical_column.keys

    @property
    def num_buckets(self) -> int:
        """The number of ids of the column."""
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features of the column."""
        return self.categorical_column.parse_example_spec

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Returns the ids of the column, one per step."""
        return self.categorical_column.host_ids(batch)


@dataclass(frozen=True)
class SequenceNumericColumn:
    """A column with one or several numbers per step. `sequence_numeric_column` returns it."""

    key: str
    shape: tuple[int, ...] = (1,)
    default_value: float = 0.0
    dtype: str = FLOAT32
    normalizer_fn: Callable[[Any], Any] | None = None
    max_values: int | None = None
    fill: float | None = None

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def width(self) -> int:
        """The number of values of one step."""
        return prod(self.shape)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The feature with any number of values."""
        return {self.key: VarLenFeature(self.dtype)}

    def host_numbers(self, batch: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the padded numbers, float32[batch, steps, *shape], and the lengths, int64[batch].

        An array holds sequences of full length, unless they end with `fill`. Rows of different lengths are lists.

        Raises:
            FeatureColumnError: the values are not numbers, a sequence has more than `max_values` steps, or a number is
                not finite and there is no `normalizer_fn` that could replace it.
        """
        array = feature_of(batch, self.key, self.name)
        ragged = array.dtype == object and array.ndim == 1
        sizes = [np.size(row) for row in array] if ragged else [int(np.prod(array.shape[1:]))] * len(array)
        steps = self.max_values or max(sizes, default=0) // self.width
        fill = np.nan if self.fill is None else self.fill
        numbers = numbers_of(batch, self.key, self.name, steps * self.width, missing=self.default_value, filled=fill)
        lengths = np.minimum(np.asarray(sizes) // self.width, steps)
        if self.fill is not None and not ragged:
            places = np.arange(steps * self.width)
            held = (numbers != np.float32(fill)) & (places < lengths[:, None] * self.width)
            last = np.where(held, places + 1, 0).max(axis=1, initial=0)
            lengths = -(-last // self.width)
            numbers = np.where(places < lengths[:, None] * self.width, numbers, np.float32(self.default_value))
        if self.normalizer_fn is None:
            given = np.arange(steps * self.width) < lengths[:, None] * self.width
            check_finite(numbers, given, self.key, "a number of a sequence")
        return numbers.reshape(len(array), steps, *self.shape), lengths


def sequence_numeric_column(
    key: str,
    shape: int | Sequence[int] = (1,),
    default_value: float = 0.0,
    dtype: Any = FLOAT32,
    normalizer_fn: Callable[[Any], Any] | None = None,
    *,
    max_values: int | None = None,
    fill: float | None = None,
) -> SequenceNumericColumn:
    """Reads sequences of numbers.

    Args:
        key: the name of the feature.
        shape: the shape of one step.
        default_value: the value that pads shorter sequences.
        dtype: the dtype of the feature in a tf.Example.
        normalizer_fn: a function of jax arrays, `[batch, steps, *shape]` to the same shape. It runs on the device. The
            steps after the end of a sequence are set to `default_value` afterwards. The function receives them, so it
            must not take a mean over steps.
        max_values: the number of steps to which sequences are padded. Longer sequences are refused.
        fill: the number that pads shorter sequences in arrays: 0.0 for files of floats, and -1.0 for files of integers.
            Such numbers at the end of a sequence are not steps. None: arrays hold sequences of full length.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Example:
        >>> sequence_numeric_column("temperature", fill=0.0).name
        'temperature'

    Source: `tf.feature_column.sequence_numeric_column`.
    """
    sizes = check_shape(shape, check_key(key))
    name = dtype_name(dtype, key)
    if name == STRING:
        raise ArgumentError(f"dtype must be convertible to float. dtype: {name}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise ArgumentTypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    filled = None if fill is None else float(fill)
    if filled is not None and not isfinite(filled):
        raise ArgumentError(f"fill must be a finite number. Given: {fill}, key: {key}")
    return SequenceNumericColumn(key, sizes, float(default_value), name, normalizer_fn, max_values, filled)


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None, *, max_values: int | None = None
) -> SequenceCategoricalColumn:
    """Returns a `categorical_column_with_identity` with one value per step.

    Example:
        >>> sequence_categorical_column_with_identity("page", 100, max_values=20).num_buckets
        100
    """
    return SequenceCategoricalColumn(
        categorical_column_with_identity(key, num_buckets, default_value, max_values=max_values)
    )


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = STRING, *, max_values: int | None = None
) -> SequenceCategoricalColumn:
    """Returns a `categorical_column_with_hash_bucket` with one value per step.

    Example:
        >>> sequence_categorical_column_with_hash_bucket("word", 1000).num_buckets
        1000
    """
    return SequenceCategoricalColumn(
        categorical_column_with_hash_bucket(key, hash_bucket_size, dtype, max_values=max_values)
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
    *,
    max_values: int | None = None,
) -> SequenceCategoricalColumn:
    """Returns a `categorical_column_with_vocabulary_list` with one value per step.

    Example:
        >>> sequence_categorical_column_with_vocabulary_list("base", ["A", "C", "G", "T"]).num_buckets
        4
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(
            key, vocabulary_list, dtype, default_value, num_oov_buckets, max_values=max_values
        )
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str | Path,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = STRING,
    *,
    max_values: int | None = None,
) -> SequenceCategoricalColumn:
    r"""Returns a `categorical_column_with_vocabulary_file` with one value per step.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "bases.txt")
        >>> _ = path.write_text("A\nC\nG\nT\n")
        >>> sequence_categorical_column_with_vocabulary_file("base", path).num_buckets
        4
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets, max_values=max_values
        )
    )
