"""`learn_schema`: a schema from some rows, in one pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_inputs.schema.bins import edges_of, shares_of
from estimator_inputs.schema.contract import FeatureSchema, Schema, Seen
from estimator_inputs.statistics.gather import gather
from estimator_inputs.statistics.record import ColumnStatistics, Statistics

#: The largest number of words of a category, and of integers of a label that are classes.
MOST_WORDS, MOST_CLASSES = 10_000, 100


def learn_schema(source: Any, *, label: str | None = None, limit: int | None = None) -> Schema:
    """Learns a schema from rows in one pass. The memory does not depend on the number of rows.

    Words that occur at least twice on average are a category, whose vocabulary contains all of them. Other words are
    text. A label of words, booleans, or at most 100 different integers is a category, whose vocabulary is the classes.
    Integers that are all different (`is_key`) have no limits. If values were missing, 1.5 times that fraction may be
    missing. Otherwise no value may be missing.

    Args:
        source: files (a path, a pattern, or a list of them), or a table in memory. Tables are pandas or polars
            DataFrames, any object that exports an Arrow stream, dicts of arrays by column and Hugging Face datasets.
            An input_fn, or its result, is also a source; its labels are the column "labels".
        label: the column that is the label. None: no label, or the labels of an input_fn.
        limit: the number of rows to read. None: all. Required for an endless input.

    Raises:
        ArgumentError, ArgumentTypeError: the source cannot be read, there are no rows, or the label does not exist.
        InputError: a file cannot be read, or a column has several types.

    Example:
        >>> schema = learn_schema({"age": [31.0, float("nan"), 8.0], "ill": ["yes", "no", "no"]}, label="ill")
        >>> schema.feature("age").mean, schema.feature("age").missing_rate, schema.classes
        (19.5, 0.3333333333333333, ('no', 'yes'))
    """
    return schema_of(gather(source, limit=limit), label=label)


def schema_of(statistics: Statistics, *, label: str | None = None) -> Schema:
    """Returns the schema that statistics suggest. See `learn_schema`."""
    if not statistics.rows:
        bad = f" {statistics.bad_rows} bad ones were left out: {statistics.bad[0]}." if statistics.bad_rows else ""
        raise ArgumentError(f"There are no rows to learn a schema from.{bad}")
    if label is None and "labels" in statistics.columns:
        label = "labels"
    if label is not None and label not in statistics.columns:
        raise ArgumentError(f"There is no column {label!r}. Columns: {', '.join(statistics.columns)}.")
    features = {name: _feature(column, is_label=name == label) for name, column in statistics.columns.items()}
    return Schema(features=features, label=label)


def _feature(column: ColumnStatistics, *, is_label: bool) -> FeatureSchema:
    if column.missing == column.rows:  # the type of a column without values depends on the reader
        column = replace(column, kind="other", dtype="null", numbers=None)
    vocabulary = _vocabulary(column, is_label=is_label)
    known: Mapping[Any, int] = _whole_counts(column) if column.kind == "number" else column.words
    feature = FeatureSchema(
        name=column.name,
        kind="category" if vocabulary else "text" if column.kind == "word" else column.kind,
        dtype=column.dtype,
        shape=column.shape,
        most_missing=_allowance(column),
        vocabulary=vocabulary,
        seen=Seen(
            rows=column.rows,
            missing=column.missing,
            different=column.different,
            mean=column.mean,
            deviation=column.deviation,
            median=column.median,
            counts={str(value): known[value] for value in vocabulary},
        ),
    )
    if column.numbers is None or vocabulary or (feature.is_key and not is_label):  # later rows have other keys
        return feature
    edges = edges_of(column.numbers, whole=column.whole)
    seen = replace(feature.seen, edges=edges, shares=shares_of(column.numbers, edges))
    return replace(feature, minimum=column.minimum, maximum=column.maximum, seen=seen)


def _vocabulary(column: ColumnStatistics, *, is_label: bool) -> tuple[Any, ...]:
    if column.kind == "word":
        often = is_label or column.dtype == "bool" or column.values >= 2 * column.different
        few = column.all_words and 0 < column.different <= MOST_WORDS
        return tuple(sorted(column.words)) if few and often else ()
    numbers = column.numbers
    if is_label and column.kind == "number" and column.whole and numbers is not None and numbers.exact:
        return tuple(sorted(_whole_counts(column))) if column.different <= MOST_CLASSES else ()
    return ()


def _whole_counts(column: ColumnStatistics) -> dict[int, int]:
    if column.numbers is None or not column.whole or column.infinite:
        return {}
    return {int(number): count for number, count in column.numbers.counts.known.items()}


def _allowance(column: ColumnStatistics) -> float:
    """Returns 1.5 times the share of missing values, rounded up to a thousandth."""
    return min(1.0, math.ceil(column.missing_rate * 1500) / 1000)
