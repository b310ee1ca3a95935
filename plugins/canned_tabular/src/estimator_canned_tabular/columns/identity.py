"""Columns of integers that already are ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from estimator_canned_tabular.columns.checks import check_count, check_default, check_key, check_max_values
from estimator_canned_tabular.columns.contract import HostIds
from estimator_canned_tabular.columns.dtypes import INT64
from estimator_canned_tabular.columns.one_feature import OneFeature
from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.host.values import rows_of


@dataclass(frozen=True)
class IdentityCategoricalColumn(OneFeature):
    """The record that `categorical_column_with_identity` returns."""

    key: str
    num_buckets: int
    default_value: int | None = None
    max_values: int | None = None
    dtype = INT64

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Returns the values in range. Other values become the default id, or -1 without one."""
        rows = rows_of(batch, self.key, self.name, self.max_values)
        if rows.are_text:
            raise FeatureColumnError(f"Feature {self.key!r} of column {self.name!r} must hold integers, given strings.")
        inside = (rows.values >= 0) & (rows.values < self.num_buckets)
        ids = np.where(inside, rows.values, -1 if self.default_value is None else self.default_value)
        return HostIds(np.where(rows.present, ids, -1), None, rows.lengths)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None, *, max_values: int | None = None
) -> IdentityCategoricalColumn:
    """Uses integers in `[0, num_buckets)` as their own ids. -1 means no value.

    Args:
        key: the name of the feature.
        num_buckets: the number of ids.
        default_value: the id of values out of range; None: they are left out.
        max_values: the number of values per example, if it varies. Shorter examples are padded.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Example:
        >>> categorical_column_with_identity("weekday", 7).num_buckets
        7

    Source: `tf.feature_column.categorical_column_with_identity`.
    """
    check_key(key)
    count = check_count("num_buckets", num_buckets, key)
    return IdentityCategoricalColumn(
        key, count, check_default(default_value, count, key), check_max_values(max_values, key)
    )
