"""Columns whose categories have weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.checks import check_key, check_on_host
from estimator_canned_tabular.columns.contract import CategoricalColumn, HostIds
from estimator_canned_tabular.columns.dtypes import FLOAT32, STRING, dtype_name
from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.host.values import check_finite, numbers_of
from estimator_core.errors import ArgumentError
from estimator_core.export import VarLenFeature


@dataclass(frozen=True)
class WeightedCategoricalColumn:
    """The record that `weighted_categorical_column` returns."""

    categorical_column: Any
    weight_feature_key: str
    dtype: str = FLOAT32

    @property
    def name(self) -> str:
        """The name of the column, `_weighted_by_` and the feature of the weights."""
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The features of the column and of the weights."""
        return (*self.categorical_column.keys, self.weight_feature_key)

    @property
    def num_buckets(self) -> int:
        """The number of ids of the column."""
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features of the column, and the weights as a feature with any number of values."""
        return {**self.categorical_column.parse_example_spec, self.weight_feature_key: VarLenFeature(self.dtype)}

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Returns the ids of the column with their weights. The weight of a missing value is 0.

        Raises:
            FeatureColumnError: the weight of a value is missing or not finite.
        """
        found: HostIds = self.categorical_column.host_ids(batch)
        width = found.ids.shape[1]
        weights = numbers_of(batch, self.weight_feature_key, self.name, width)
        check_finite(weights, found.ids != -1, self.weight_feature_key, "the weight of a value")
        if not _fills(batch[self.weight_feature_key], width):
            given = numbers_of(batch, self.weight_feature_key, self.name, width, missing=np.nan, filled=0.0)
            self._check_complete((found.ids != -1) & np.isnan(given))
        return found._replace(weights=np.where(found.ids != -1, weights, np.float32(0)))  # NaN times 0 is NaN

    def _check_complete(self, lacking: np.ndarray) -> None:
        if lacking.any():
            row, place = np.argwhere(lacking)[0].tolist()
            raise FeatureColumnError(
                f"Feature {self.weight_feature_key!r} has {place} weights in row {row} of the batch, fewer than "
                f"{self.categorical_column.name!r} has values. Give each value a weight."
            )


def _fills(weights: np.ndarray, width: int) -> bool:
    """Returns whether each place of a row has a number, as is usual for arrays."""
    if weights.dtype == object:
        return False
    return (1 if weights.ndim == 1 else weights.shape[1]) >= width


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = FLOAT32
) -> WeightedCategoricalColumn:
    """Multiplies each value of a categorical column by a weight from another feature.

    Args:
        categorical_column: the column of the categories.
        weight_feature_key: the feature with a weight for each value.
        dtype: the dtype of the weights in a tf.Example.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import categorical_column_with_identity
        >>> weighted_categorical_column(categorical_column_with_identity("word", 3), "count").name
        'word_weighted_by_count'

    Source: `tf.feature_column.weighted_categorical_column`.
    """
    if not isinstance(categorical_column, CategoricalColumn):
        raise ArgumentError(f"categorical_column must be a categorical column. Given: {categorical_column}")
    check_on_host(categorical_column, "weighted_categorical_column")
    name = dtype_name(dtype, check_key(weight_feature_key))
    if name == STRING:
        raise ArgumentError(f"dtype {name} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, name)
