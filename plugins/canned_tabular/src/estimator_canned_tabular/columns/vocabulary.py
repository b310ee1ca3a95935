"""Columns of values from a vocabulary: a list, or a file with one value per line."""

from __future__ import annotations

import codecs
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.checks import (
    check_count,
    check_dates,
    check_default,
    check_key,
    check_max_values,
    check_oov,
)
from estimator_canned_tabular.columns.contract import HostIds
from estimator_canned_tabular.columns.dtypes import INT64, STRING, string_or_integer
from estimator_canned_tabular.columns.one_feature import OneFeature
from estimator_canned_tabular.errors import FeatureColumnError
from estimator_canned_tabular.host.dates import CURE, canonical_date
from estimator_canned_tabular.host.spelling import Spelling, spelling_of
from estimator_canned_tabular.host.values import Rows, fingerprints_of, rows_of
from estimator_core.errors import ArgumentError, is_integer


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(OneFeature):
    """The record that `categorical_column_with_vocabulary_list` returns. With `truths`, its words are truth values."""

    key: str
    vocabulary_list: tuple[Any, ...]
    dtype: str
    default_value: int = -1
    num_oov_buckets: int = 0
    max_values: int | None = None
    missing_bucket: bool = False
    dates: bool = False
    truths: bool = False

    @property
    def num_buckets(self) -> int:
        """The total of the vocabulary, the buckets of unknown values, and the bucket of missing values."""
        return len(self.vocabulary_list) + self.num_oov_buckets + self.missing_bucket

    @property
    def tokens(self) -> tuple[Any, ...]:
        """The vocabulary, in the order of its ids: bytes objects or integers."""
        return tuple(_table(self.vocabulary_list))

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Returns the position of each value in the vocabulary."""
        spelling = spelling_of(self)
        table = _table(self.vocabulary_list) if spelling is None else _table_of(self.vocabulary_list, spelling)
        return _found(self.rows(batch), table, self)

    def rows(self, batch: Mapping[str, np.ndarray]) -> Rows:
        """Returns the values and the mask of existing values."""
        return rows_of(batch, self.key, self.name, self.max_values, spelling=spelling_of(self))


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(OneFeature):
    """The record that `categorical_column_with_vocabulary_file` returns."""

    key: str
    vocabulary_file: Path
    vocabulary_size: int
    dtype: str = STRING
    default_value: int = -1
    num_oov_buckets: int = 0
    max_values: int | None = None
    missing_bucket: bool = False

    @property
    def num_buckets(self) -> int:
        """The total of the vocabulary, the buckets of unknown values, and the bucket of missing values."""
        return self.vocabulary_size + self.num_oov_buckets + self.missing_bucket

    @property
    def tokens(self) -> tuple[Any, ...]:
        """The vocabulary, in the order of its ids: bytes objects or integers."""
        return tuple(self._table())

    def host_ids(self, batch: Mapping[str, np.ndarray]) -> HostIds:
        """Returns the line number of each value in the file."""
        return _found(self.rows(batch), self._table(), self)

    def rows(self, batch: Mapping[str, np.ndarray]) -> Rows:
        """Returns the values and the mask of existing values."""
        return rows_of(batch, self.key, self.name, self.max_values)

    def _table(self) -> dict[Any, int]:
        return _table_of_file(self.vocabulary_file, self.vocabulary_size, self.dtype)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
    *,
    max_values: int | None = None,
    missing_bucket: bool = False,
    dates: bool = False,
) -> VocabularyListCategoricalColumn:
    """Maps the values of a list to their positions in the list.

    Args:
        key: the name of the feature.
        vocabulary_list: strings or integers, all different.
        dtype: "string" or "int64"; None: the dtype of the list.
        default_value: the id of unknown values; -1: they are left out.
        num_oov_buckets: the number of buckets after the vocabulary, over which unknown values are distributed by their
            hash.
        max_values: the number of values per example, if it varies. Shorter examples are padded.
        missing_bucket: whether examples without a value have a separate bucket, the last one. Without out-of-vocabulary
            buckets, examples that have only unknown values are in it, too.
        dates: whether the values are dates and times of ISO 8601. All spellings of a moment (2024-01-31,
            2024-01-31T00:00:00Z, numpy.datetime64) have the same id, and any other text is refused. Such a column can
            be exported only as stablehlo.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used.

    Example:
        >>> import numpy as np
        >>> column = categorical_column_with_vocabulary_list("colour", ["R", "G", "B"])
        >>> column.host_ids({"colour": np.array(["B", "X", "R"])}).ids.tolist()
        [[2], [-1], [0]]

    Source: `tf.feature_column.categorical_column_with_vocabulary_list`.
    """
    check_key(key)
    words = tuple(map(_plain, vocabulary_list))
    if not words:
        raise ArgumentError(f"vocabulary_list {list(vocabulary_list)} must be non-empty, column_name: {key}")
    if len(set(words)) != len(words):
        raise ArgumentError(f"Duplicate keys in vocabulary_list {list(words)}, column_name: {key}")
    are_text = all(isinstance(word, str) for word in words)
    if not are_text and not all(isinstance(word, int) for word in words):
        raise ArgumentError(f"vocabulary_list must hold only strings or only integers, column_name: {key}")
    name = string_or_integer((STRING if are_text else INT64) if dtype is None else dtype, key)
    if (name == STRING) != are_text:
        raise ArgumentError(f"dtype {name} and vocabulary dtype do not match, column_name: {key}")
    buckets = check_oov(num_oov_buckets, default_value, key)
    if default_value != -1:
        check_default(default_value, len(words), key)
    places = check_max_values(max_values, key)
    if dates:
        check_dates(name, key)
        _check_dates(words, key)
    return VocabularyListCategoricalColumn(
        key, words, name, default_value, buckets, places, bool(missing_bucket), bool(dates)
    )


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str | Path,
    vocabulary_size: int | None = None,
    dtype: Any = STRING,
    default_value: int | None = None,
    num_oov_buckets: int = 0,
    file_format: str | None = None,
    *,
    max_values: int | None = None,
    missing_bucket: bool = False,
) -> VocabularyFileCategoricalColumn:
    r"""Maps the values of a text file, one per line, to the line number, from 0.

    Args:
        key: the name of the feature.
        vocabulary_file: the path of the file. It is read now, and copied into exports. Its byte order mark (BOM) is
            ignored.
        vocabulary_size: the number of lines to use; None: all.
        dtype: "string" or "int64".
        default_value: the id of unknown values; None: they are left out.
        num_oov_buckets: the number of buckets after the vocabulary, over which unknown values are distributed by their
            hash.
        file_format: None or "text".
        max_values: the number of values per example, if it varies. Shorter examples are padded.
        missing_bucket: whether examples without a value have a separate bucket, the last one. Without out-of-vocabulary
            buckets, examples that have only unknown values are in it, too.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used, or the file is missing or too short.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "colours.txt")
        >>> _ = path.write_text("R\nG\nB\n")
        >>> categorical_column_with_vocabulary_file("colour", path, num_oov_buckets=2).num_buckets
        5

    Source: `tf.feature_column.categorical_column_with_vocabulary_file`.
    """
    check_key(key)
    if file_format not in (None, "text"):
        raise ArgumentError(f"vocabulary_file of {key} must be a text file: file_format {file_format!r} is not read.")
    if not vocabulary_file:
        raise ArgumentError(f"Missing vocabulary_file in {key}.")
    path = Path(os.path.expanduser(vocabulary_file))
    if not path.is_file():
        raise ArgumentError(f"There is no vocabulary file {str(path)!r} (column {key!r}).")
    if vocabulary_size is not None:
        if is_integer(vocabulary_size) and vocabulary_size < 1:  # the words of tf.feature_column
            raise ArgumentError(f"Invalid vocabulary_size in {key}.")
        vocabulary_size = check_count("vocabulary_size", vocabulary_size, key)
    name = string_or_integer(dtype, key)
    table = _table_of_file(path, vocabulary_size, name)
    size = len(table) if vocabulary_size is None else vocabulary_size
    buckets = check_oov(num_oov_buckets, default_value, key)
    default = -1 if default_value is None else default_value
    if default != -1:
        check_default(default, size, key)
    return VocabularyFileCategoricalColumn(
        key, path, size, name, default, buckets, check_max_values(max_values, key), bool(missing_bucket)
    )


def _plain(word: Any) -> Any:
    """Returns a word as str or int, also if it is of numpy, a truth value or a member of an enum."""
    if isinstance(word, bytes):
        return word.decode()
    if isinstance(word, str):
        return str.__str__(word)
    value = word.item() if isinstance(word, np.generic) else word
    return int(value) if isinstance(value, int) else value


def _check_dates(words: tuple[Any, ...], key: str) -> None:
    found = [canonical_date(word) for word in words]
    if None in found:
        word = words[found.index(None)]
        raise ArgumentError(f"{word!r} of vocabulary_list is not a date, column_name: {key}. {CURE}")
    if len(set(found)) != len(found):
        word = next(word for place, word in enumerate(words) if found[place] in found[:place])
        raise ArgumentError(f"{word!r} of vocabulary_list is repeated in another form, column_name: {key}.")


@functools.lru_cache(maxsize=64)
def _table_of(words: tuple[Any, ...], spelling: Spelling) -> dict[Any, int]:
    return {spelling.canonical(word): place for place, word in enumerate(words)}


@functools.lru_cache(maxsize=64)
def _table(words: tuple[Any, ...]) -> dict[Any, int]:
    return {word.encode() if isinstance(word, str) else word: place for place, word in enumerate(words)}


def _table_of_file(path: Path, size: int | None, dtype: str) -> dict[Any, int]:
    return _table_of_file_as_of(path, size, dtype, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _table_of_file_as_of(path: Path, size: int | None, dtype: str, changed: int) -> dict[Any, int]:
    # Not splitlines: vocabularies contain characters that it treats as line ends.
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8).removesuffix(b"\n")
    lines = [line.rstrip(b"\r") for line in content.split(b"\n")]
    if not any(lines):
        raise ArgumentError(f"{path} holds no word: a vocabulary file has one word in each line.")
    if size is not None:
        if len(lines) < size:
            raise ArgumentError(f"{path} has {len(lines)} lines, fewer than vocabulary_size={size}.")
        lines = lines[:size]
    if dtype != STRING:
        try:
            words: list[Any] = [int(line) for line in lines]
        except ValueError as error:
            raise ArgumentError(f"{path} must hold an integer in each line: {error}.") from error
    else:
        words = lines
    table = {word: place for place, word in enumerate(words)}
    if len(table) != len(words):
        twice = next(word for place, word in enumerate(words) if table[word] != place)
        raise ArgumentError(f"{path}: {twice!r} is in two lines; each line must hold a different value.")
    return table


def _found(rows: Rows, table: Mapping[Any, int], column: Any) -> HostIds:
    if rows.are_text != (column.dtype == STRING):
        given, wanted = ("strings", "integers") if rows.are_text else ("integers", "strings")
        raise FeatureColumnError(f"Feature {column.key!r} of column {column.name!r} must hold {wanted}, given {given}.")
    flat = rows.values.reshape(-1).tolist()
    ids = np.fromiter(map(table.get, flat, itertools.repeat(-1)), np.int64, len(flat)).reshape(rows.values.shape)
    unknown = (ids == -1) & rows.present
    if column.num_oov_buckets:
        if unknown.any():
            strange = Rows(rows.values[unknown][None], rows.present[unknown][None])
            buckets = fingerprints_of(strange)[0] % np.uint64(column.num_oov_buckets)
            ids[unknown] = buckets.astype(np.int64) + len(table)
    else:
        ids[unknown] = column.default_value
    return HostIds(np.where(rows.present, ids, -1), None, rows.lengths)
