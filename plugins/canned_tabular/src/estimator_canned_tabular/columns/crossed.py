"""Combinations of features, hashed into buckets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.checks import check_count, check_on_host
from estimator_canned_tabular.columns.contract import CategoricalColumn, HostIds
from estimator_canned_tabular.columns.dtypes import STRING
from estimator_canned_tabular.columns.hashed import HashedCategoricalColumn
from estimator_canned_tabular.columns.vocabulary import VocabularyFileCategoricalColumn, VocabularyListCategoricalColumn
from estimator_canned_tabular.hashing.cross import cross_fingerprints
from estimator_canned_tabular.host.values import fingerprints_of, rows_of
from estimator_core.errors import ArgumentError, is_integer
from estimator_core.export import VarLenFeature

Key = str | CategoricalColumn
#: Columns whose ids do not show whether a value exists: both an unknown word and a missing one have the id -1.
VOCABULARIES = (VocabularyListCategoricalColumn, VocabularyFileCategoricalColumn)


@dataclass(frozen=True)
class CrossedColumn:
    """The record that `crossed_column` returns."""

    crossed: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None = None
    dense_strings: bool = False
    max_values: int | None = None

    @property
    def name(self) -> str:
        """The sorted names of the parts, joined by `_X_`."""
        return "_X_".join(sorted(part if isinstance(part, str) else part.name for part in self._leaves()))

    @property
    def keys(self) -> tuple[str, ...]:
        """The features of all parts."""
        found = [key for part in self._leaves() for key in ((part,) if isinstance(part, str) else part.keys)]
        return tuple(dict.fromkeys(found))

    @property
    def num_buckets(self) -> int:
        """The number of buckets."""
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features of the parts. A part that is a name reads any number of strings."""
        spec: dict[str, Any] = {}
        for part in self._leaves():
            spec.update({part: VarLenFeature(STRING)} if isinstance(part, str) else part.parse_example_spec)
        return spec

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Returns the bucket of every combination of values of an example, or -1 if one of the parts has no value.

        A word that a vocabulary does not know is a value: it is hashed as -1.
        """
        parts = [self._part(part, batch) for part in self.parts_in_order()]
        places = np.meshgrid(*(np.arange(values.shape[1]) for values, _ in parts), indexing="ij")
        chosen = [place.reshape(-1) for place in places]
        values = [part[0][:, place] for part, place in zip(parts, chosen, strict=True)]
        present = np.logical_and.reduce([part[1][:, place] for part, place in zip(parts, chosen, strict=True)])
        hashes = cross_fingerprints(values, self.hash_key) % np.uint64(self.hash_bucket_size)
        ids = np.where(present, hashes.astype(np.int64), -1)
        return HostIds(ids, None, np.full(len(ids), ids.shape[1]))

    def _leaves(self) -> Iterator[Key]:
        for part in self.crossed:
            if isinstance(part, CrossedColumn):
                yield from part._leaves()  # noqa: SLF001 - of its own class
            else:
                yield part

    def parts_in_order(self) -> list[Key]:
        """Returns the parts in the order of hashing, with nested crosses expanded. The hash depends on the order."""
        leaves = list(self._leaves())
        return sorted(leaves, key=lambda part: isinstance(part, str)) if self.dense_strings else leaves

    def _part(self, part: Key, batch: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(part, str):
            ids = part.host_ids(batch).ids
            if isinstance(part, VOCABULARIES):
                return ids.astype(np.uint64), part.rows(batch).present
            return ids.astype(np.uint64), ids >= 0
        rows = rows_of(batch, part, self.name, self.max_values)
        values = fingerprints_of(rows) if rows.are_text else rows.values.astype(np.uint64)
        return values, np.ones_like(rows.present) if self.dense_strings else rows.present


def crossed_column(
    keys: Sequence[Any],
    hash_bucket_size: int,
    hash_key: int | None = None,
    *,
    dense_strings: bool | None = None,
    max_values: int | None = None,
) -> CrossedColumn:
    """Hashes combinations of features into buckets: `hash(first, second, ...) % hash_bucket_size`.

    Args:
        keys: two or more names of features, or bucketized, identity, vocabulary or crossed columns.
        hash_bucket_size: the number of buckets.
        hash_key: the start value of the hash; None or 0: the default of TensorFlow.
        dense_strings: whether the buckets equal those of tf.estimator for features by name that are dense arrays, as
            those of numpy, pandas and CSV files. Such features are hashed after the columns, and `""` is a value.
            False: the buckets equal those for features parsed from tf.Examples (`VarLenFeature`). None: True, unless
            `max_values` is set.
        max_values: the number of values per example of features by name, if it varies. Shorter examples are padded.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> import numpy as np
        >>> batch = {"a": np.array(["x", "y"]), "b": np.array(["1", "2"])}
        >>> crossed_column(["a", "b"], 10).host_ids(batch).ids.tolist()
        [[5], [4]]

    Source: `tf.feature_column.crossed_column`.
    """
    if isinstance(keys, str) or len(keys) < 2:
        raise ArgumentError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if isinstance(key, HashedCategoricalColumn):
            raise ArgumentError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing will "
                "increase probability of collision. Instead, use the feature name as a string. "
                f"Given: {key}"
            )
        if not isinstance(key, (str, CategoricalColumn)):
            raise ArgumentError(
                f"Unsupported key type. All keys must be either string, or categorical column except "
                f"HashedCategoricalColumn. Given: {key}"
            )
        check_on_host(key, "crossed_column")
    size = check_count("hash_bucket_size", hash_bucket_size, "_X_".join(map(str, keys)))
    if hash_key is not None and (not is_integer(hash_key) or not -(2**63) <= hash_key < 2**63):
        raise ArgumentError("hash_key must be None or an integer of 64 bits.")
    dense = max_values is None if dense_strings is None else dense_strings
    return CrossedColumn(tuple(keys), size, hash_key or None, dense, max_values)
