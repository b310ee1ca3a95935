"""The plan that divides columns into a host part and a device part. The host transform and the layers share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from estimator_canned_tabular.columns.contract import CategoricalColumn, FeatureColumn
from estimator_canned_tabular.columns.crossed import CrossedColumn
from estimator_canned_tabular.columns.dtypes import STRING
from estimator_canned_tabular.columns.embedding import EmbeddingColumn
from estimator_canned_tabular.columns.hashed import HashedCategoricalColumn
from estimator_canned_tabular.columns.indicator import IndicatorColumn
from estimator_canned_tabular.columns.numeric import BucketizedColumn, NumericColumn
from estimator_canned_tabular.columns.one_feature import OneFeature
from estimator_canned_tabular.columns.sequence import SequenceNumericColumn
from estimator_canned_tabular.columns.vocabulary import VocabularyFileCategoricalColumn, VocabularyListCategoricalColumn
from estimator_canned_tabular.columns.weighted import WeightedCategoricalColumn
from estimator_canned_tabular.host.checked_numbers import CheckedNumbers
from estimator_canned_tabular.host.number_rule import NumberRule
from estimator_canned_tabular.host.spelling import spelling_of
from estimator_canned_tabular.host.transform import FeatureIds
from estimator_canned_tabular.host.word_rule import WordRule
from estimator_core.errors import ArgumentError
from estimator_heads import digest


@dataclass(frozen=True)
class FeaturePlan:
    """The split of some columns: strings become ids on the host; numbers, buckets and lookups stay on the device.

    Attributes:
        columns: all columns.
        outputs: for each column with a host part: its name in the transformed batch.
        kept: the features that the device reads unchanged.
    """

    columns: tuple[Any, ...]
    outputs: Mapping[Any, str] = field(default_factory=dict[Any, str])
    kept: frozenset[str] = frozenset()

    @classmethod
    def of(cls, columns: Iterable[Any], keep: Iterable[str] = ()) -> FeaturePlan:
        """Returns the plan of columns.

        Args:
            columns: any columns; the same one may occur several times.
            keep: features that the device reads although a categorical column reads them too.

        Raises:
            ArgumentError: an object is not a column.
        """
        every = tuple(columns)
        outputs: dict[Any, str] = {}
        kept, later = set(keep), list[Any]()
        for column in every:
            if not isinstance(column, FeatureColumn):
                raise ArgumentError(f"Items of feature_columns must be feature columns. Given: {column!r}.")
            part = _part(column)
            if isinstance(part, BucketizedColumn):
                kept.add(part.source_column.key)
            elif isinstance(part, NumericColumn):
                kept.add(part.key)
            elif part not in later:
                later.append(part)
        for part in later:
            outputs[part] = _free_name(part.name, set(outputs.values()), kept)
        return cls(every, outputs, frozenset(kept))

    def rules(self) -> dict[str, NumberRule]:
        """Returns the rules of numeric columns for their features."""
        rules: dict[str, NumberRule] = {}
        words = {key for column in self.columns for key in _words_in(column)}
        # Buckets on the host replace or refuse missing numbers themselves, so what the device reads decides.
        columns = sorted(self.columns, key=lambda one: _part(one) in self.outputs)
        for column, source in ((one, source) for one in columns for source in _numbers_in(one)):
            rule = NumberRule(key=source.key, width=source.places, missing=source.missing, whole=source.key in words)
            known = rules.setdefault(source.key, rule)
            if known != rule and (_part(column) not in self.outputs or known.width != rule.width):
                raise ArgumentError(
                    f"Columns of the feature {source.key!r} differ in missing or shape: {known.missing!r} and "
                    f"{rule.missing!r}, {known.width} and {rule.width} numbers. Give them the same ones."
                )
        return rules

    def word_rules(self) -> dict[str, WordRule]:
        """Returns the rules of categorical columns for the features that no numeric column reads."""
        numbers, rules = self.rules(), dict[str, WordRule]()
        for column in self.outputs:
            if not isinstance(column, OneFeature) or column.key in numbers:
                continue
            hashed, text = isinstance(column, HashedCategoricalColumn), column.dtype == STRING
            spelling = spelling_of(column)
            rule = WordRule(
                key=column.key,
                texts=hashed or text,
                integers=(hashed or not text) and spelling is None,
                spelling=spelling,
            )
            if rules.setdefault(column.key, rule) != rule:
                rules[column.key] = WordRule(key=column.key, texts=True, integers=True)
        return rules

    def with_fills(self, features: Mapping[str, Any], known: Callable[[str], Any]) -> Mapping[str, Any]:
        """Returns the features with the learned replacements of missing numbers, for `numbers_of`.

        Args:
            features: the features on the device.
            known: a function that returns what was learned about a feature, or None.

        Raises:
            ArgumentError: a replacement has not been learned yet.
        """
        fills: dict[str, Any] = {}
        for key, rule in self.rules().items():
            if not rule.learns:
                continue
            fill = known(key)
            if fill is None:
                raise ArgumentError(f"The {rule.missing} of the feature {key!r} is learned in training. Train first.")
            fills[fill_name(key)] = np.asarray(fill, np.float32)
        return {**features, **fills} if fills else features

    def vocabularies(self) -> dict[str, str]:
        """Returns a digest of what the ids of each feature mean: of its vocabularies and the boundaries of its buckets.

        Vocabulary files are read again if they changed.
        """
        found: dict[str, set[str]] = {}
        for key, meaning in (pair for column in self.columns for pair in _meanings(column)):
            found.setdefault(key, set()).add(digest(meaning))
        return {key: "+".join(sorted(digests)) for key, digests in found.items()}

    def checks(self) -> tuple[CheckedNumbers, ...]:
        """Returns the rules as a transform for exports, or no transform if there are no rules."""
        rules = {
            key: {"width": rule.width, "missing": rule.missing} | ({"whole": True} if rule.whole else {})
            for key, rule in self.rules().items()
        }
        return (CheckedNumbers(rules),) if rules else ()

    def transforms(self) -> tuple[FeatureIds, ...]:
        """Returns the host part as one transform, or no transform if the host has nothing to do."""
        if not self.outputs:
            return ()
        consumed = {key for column in self.outputs for key in _keys(column)}
        return (FeatureIds({name: column for column, name in self.outputs.items()}, sorted(consumed - self.kept)),)


def fill_name(key: str) -> str:
    """Returns the name of the replacement of missing numbers among the features. No file or client uses it."""
    return f"{key}\0fill"


_MADE = ("ids", "weights", "numbers", "lengths")  # the parts of the output of a host part


def _part(column: Any) -> Any:
    """The column itself, or the categories that it embeds or indicates."""
    return column.categorical_column if isinstance(column, (IndicatorColumn, EmbeddingColumn)) else column


def _numbers_in(column: Any) -> Iterator[NumericColumn]:
    """Yields the numeric columns whose features a column reads, also inside a cross, embedding or weighted column."""
    if isinstance(column, NumericColumn):
        yield column
    elif isinstance(column, BucketizedColumn):
        yield column.source_column
    elif isinstance(column, CrossedColumn):
        yield from (source for part in column.parts_in_order() for source in _numbers_in(part))
    elif isinstance(column, (IndicatorColumn, EmbeddingColumn, WeightedCategoricalColumn)):
        yield from _numbers_in(column.categorical_column)


def _meanings(column: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yields the features that a column reads as categories, with the words or boundaries that its ids stand for."""
    if isinstance(column, BucketizedColumn):
        # as numbers are compared with them; -0.0 becomes 0.0
        yield column.source_column.key, tuple(float(np.float32(boundary)) + 0.0 for boundary in column.boundaries)
    elif isinstance(column, (VocabularyListCategoricalColumn, VocabularyFileCategoricalColumn)):
        spelling = spelling_of(column)  # spellings of one date are one word
        yield column.key, column.tokens if spelling is None else tuple(map(spelling.canonical, column.tokens))
    elif isinstance(column, CrossedColumn):
        yield from (pair for part in column.parts_in_order() for pair in _meanings(part))
    elif hasattr(column, "categorical_column"):
        yield from _meanings(column.categorical_column)


def _words_in(column: Any) -> Iterator[str]:
    """Yields the features that a column reads as categories, also in a cross."""
    if isinstance(column, CrossedColumn):
        yield from (key for part in column.parts_in_order() for key in _words_in(part))
    elif isinstance(column, (str, OneFeature)):
        yield column if isinstance(column, str) else column.key
    else:
        yield from _words_in(column.categorical_column) if hasattr(column, "categorical_column") else ()


def _keys(column: Any) -> tuple[str, ...]:
    if isinstance(column, SequenceNumericColumn):
        return (column.key,)
    assert isinstance(column, CategoricalColumn)
    return column.keys


def _free_name(name: str, taken: set[str], kept: set[str]) -> str:
    """Returns an unused name. Two columns may have one name, such as a feature in 1000 buckets and in 100.

    A feature may also have the name of an output.

    Args:
        name: the name of the column.
        taken: the names of other columns.
        kept: the features that the device reads, which the host part must not replace.
    """
    number, free = 1, name
    while free in taken or any(f"{free}.{made}" in kept for made in _MADE):
        number += 1
        free = f"{name}_{number}"
    return free
