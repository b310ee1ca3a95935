"""Columns that distribute values over buckets by their hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.checks import check_count, check_dates, check_key, check_max_values
from estimator_canned_tabular.columns.contract import HostIds
from estimator_canned_tabular.columns.dtypes import STRING, string_or_integer
from estimator_canned_tabular.columns.one_feature import OneFeature
from estimator_canned_tabular.host.spelling import spelling_of
from estimator_canned_tabular.host.values import fingerprints_of, rows_of


@dataclass(frozen=True)
class HashedCategoricalColumn(OneFeature):
    """The record that `categorical_column_with_hash_bucket` returns."""

    key: str
    hash_bucket_size: int
    dtype: str = STRING
    max_values: int | None = None
    missing_bucket: bool = False
    dates: bool = False

    @property
    def num_buckets(self) -> int:
        """The number of buckets, including the bucket of missing values."""
        return self.hash_bucket_size + self.missing_bucket

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Returns the bucket of each value."""
        rows = rows_of(batch, self.key, self.name, self.max_values, spelling=spelling_of(self))
        buckets = (fingerprints_of(rows) % np.uint64(self.hash_bucket_size)).astype(np.int64)
        return HostIds(np.where(rows.present, buckets, -1), None, rows.lengths)


def categorical_column_with_hash_bucket(
    key: str,
    hash_bucket_size: int,
    dtype: Any = STRING,
    *,
    max_values: int | None = None,
    missing_bucket: bool = False,
    dates: bool = False,
) -> HashedCategoricalColumn:
    """Distributes strings or integers over buckets: `Fingerprint64(value) % hash_bucket_size`.

    Args:
        key: the name of the feature.
        hash_bucket_size: the number of buckets.
        dtype: "string" or "int64"; integers are hashed as decimal digits.
        max_values: the number of values per example, if it varies. Shorter examples are padded.
        missing_bucket: whether examples without a value have a separate bucket, the last one.
        dates: whether the values are dates and times, see `categorical_column_with_vocabulary_list`.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Example:
        >>> import numpy as np
        >>> column = categorical_column_with_hash_bucket("word", 10)
        >>> column.host_ids({"word": np.array(["a", "b", ""])}).ids.tolist()
        [[9], [2], [-1]]

    Source: `tf.feature_column.categorical_column_with_hash_bucket`.
    """
    count = check_count("hash_bucket_size", hash_bucket_size, check_key(key))
    places = check_max_values(max_values, key)
    name = string_or_integer(dtype, key)
    if dates:
        check_dates(name, key)
    return HashedCategoricalColumn(key, count, name, places, bool(missing_bucket), bool(dates))
