"""The host part of columns as the operations that export formats write into their files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from estimator_canned_tabular.columns.contract import CategoricalColumn
from estimator_canned_tabular.columns.crossed import VOCABULARIES, CrossedColumn
from estimator_canned_tabular.columns.dtypes import STRING
from estimator_canned_tabular.columns.hashed import HashedCategoricalColumn
from estimator_canned_tabular.columns.identity import IdentityCategoricalColumn
from estimator_canned_tabular.columns.numeric import BucketizedColumn
from estimator_canned_tabular.columns.sequence import SequenceCategoricalColumn, SequenceNumericColumn
from estimator_canned_tabular.columns.vocabulary import (
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
)
from estimator_canned_tabular.columns.weighted import WeightedCategoricalColumn
from estimator_canned_tabular.hashing.cross import DEFAULT_KEY
from estimator_canned_tabular.host.spelling import DATES, spelling_of
from estimator_core.errors import ExportError
from estimator_core.export import (
    Bucketize,
    Cast,
    Cross,
    Feature,
    Fit,
    FullLengths,
    HashBucket,
    HostOperation,
    Lengths,
    Lookup,
    Reshape,
    Within,
)

Features = Mapping[str, Feature]


class Value(NamedTuple):
    """A value of a program: its name, the number of places of an example, and its dtype."""

    name: str
    width: int
    dtype: str


class Operations:
    """Operations in the order in which they were requested, each with a unique name for its result.

    Args:
        features: the arrays of the batch. Their names are not used for results.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.written: list[HostOperation] = []

    def add(self, make: Callable[[str], HostOperation]) -> str:
        """Adds an operation, and returns the name of its result."""
        number = len(self.written)
        name = f"value {number}"
        while name in self.features:
            name += "'"
        self.written.append(make(name))
        return name

    def places(self, key: str, column: str) -> Value:
        """Returns a feature as [batch, places].

        Raises:
            ExportError: the receiver does not have the feature.
        """
        if key not in self.features:
            raise ExportError(
                f"Feature {key!r} of column {column!r} is not among the features of the receiver: "
                f"{sorted(self.features)}."
            )
        feature = self.features[key]
        width = prod(size for size in feature.shape[1:] if size is not None)
        return Value(self.add(lambda name: Reshape(input=key, output=name, shape=(width,))), width, feature.dtype)

    def rows(self, key: str, column: str, max_values: int | None) -> Value:
        """Returns the values of a categorical feature, text or int64.

        Raises:
            ExportError: the values are floats.
        """
        found = self.places(key, column)
        text = found.dtype == STRING
        if not text and np.dtype(found.dtype).kind not in "iub":
            raise _wrong_kind(key, column, "strings or integers", found.dtype)
        if not text:
            whole = self.add(lambda name: Cast(input=found.name, output=name, dtype="int64"))
            found = Value(whole, found.width, "int64")
        return found if max_values is None else self.fitted(found, max_values, b"" if text else -1)

    def numbers(self, key: str, column: str, width: int, fill: float = 0.0) -> Value:
        """Returns a feature of numbers, float32[batch, width].

        Raises:
            ExportError: the feature holds strings.
        """
        found = self.places(key, column)
        if found.dtype == STRING:
            raise _wrong_kind(key, column, "numbers", found.dtype)
        numbers = self.add(lambda name: Cast(input=found.name, output=name, dtype="float32"))
        return self.fitted(Value(numbers, found.width, "float32"), width, fill)

    def fitted(self, value: Value, width: int, fill: bytes | float) -> Value:
        """Returns the value with `width` places, padded or cut."""
        name = self.add(lambda name: Fit(input=value.name, output=name, width=width, fill=fill))
        return Value(name, width, value.dtype)


class Ids(NamedTuple):
    """The categories of a column: ids and weights [batch, places], and the rows that set the sequence lengths."""

    ids: Value
    rows: Value
    weights: str | None = None


@functools.singledispatch
def ids_of(column: Any, operations: Operations) -> Ids:
    """Writes the operations for the ids of a categorical column.

    Raises:
        ExportError: the column is of another package, or cannot read the features.
    """
    raise ExportError(f"The column {getattr(column, 'name', column)!r} does not say what its operations are.")


def _wrong_kind(key: str, column: str, wanted: str, dtype: str) -> ExportError:
    given = "strings" if dtype == STRING else dtype
    return ExportError(f"Feature {key!r} of column {column!r} must hold {wanted}, but holds {given} in the receiver.")


@ids_of.register
def _(column: IdentityCategoricalColumn, operations: Operations) -> Ids:
    rows = operations.rows(column.key, column.name, column.max_values)
    if rows.dtype == STRING:
        raise _wrong_kind(column.key, column.name, "integers", rows.dtype)
    otherwise = -1 if column.default_value is None else column.default_value
    ids = operations.add(
        lambda name: Within(input=rows.name, output=name, count=column.num_buckets, otherwise=otherwise)
    )
    return Ids(rows._replace(name=ids), rows)


@ids_of.register
def _(column: HashedCategoricalColumn, operations: Operations) -> Ids:
    _check_spelling(column)
    rows = operations.rows(column.key, column.name, column.max_values)
    ids = operations.add(lambda name: HashBucket(input=rows.name, output=name, buckets=column.hash_bucket_size))
    return Ids(Value(ids, rows.width, "int64"), rows)


@ids_of.register(VocabularyListCategoricalColumn)
@ids_of.register(VocabularyFileCategoricalColumn)
def _(column: VocabularyListCategoricalColumn | VocabularyFileCategoricalColumn, operations: Operations) -> Ids:
    _check_spelling(column)
    rows = operations.rows(column.key, column.name, column.max_values)
    if (rows.dtype == STRING) != (column.dtype == STRING):
        raise _wrong_kind(column.key, column.name, "strings" if column.dtype == STRING else "integers", rows.dtype)
    ids = operations.add(
        lambda name: Lookup(
            input=rows.name,
            output=name,
            words=column.tokens,
            otherwise=column.default_value,
            buckets=column.num_oov_buckets,
        )
    )
    return Ids(Value(ids, rows.width, "int64"), rows)


@ids_of.register
def _(column: BucketizedColumn, operations: Operations) -> Ids:
    if column.source_column.missing is not None:
        raise ExportError(
            f"Missing numbers of {column.name!r} are replaced before they are crossed or weighted, but this format has "
            "no operation for that. Export as stablehlo."
        )
    rows = operations.numbers(column.key, column.name, column.source_column.places)
    ids = operations.add(lambda name: Bucketize(input=rows.name, output=name, boundaries=column.boundaries))
    return Ids(Value(ids, rows.width, "int64"), rows)


@ids_of.register
def _(column: CrossedColumn, operations: Operations) -> Ids:
    parts = column.parts_in_order()
    values: list[Value] = []
    blanks: list[str | None] = []
    for part in parts:
        if isinstance(part, str):
            values.append(operations.rows(part, column.name, column.max_values))
            blanks.append(None if column.dense_strings else values[-1].name)
        else:
            found = ids_of(part, operations)
            values.append(found.ids)
            # An unknown word has the id of a blank, but it is a value.
            blanks.append(found.rows.name if isinstance(part, VOCABULARIES) else found.ids.name)
    ids = operations.add(
        lambda name: Cross(
            inputs=tuple(value.name for value in values),
            output=name,
            buckets=column.hash_bucket_size,
            key=DEFAULT_KEY if column.hash_key is None else column.hash_key,
            blanks=tuple(blanks),
        )
    )
    crossed = Value(ids, prod(value.width for value in values), "int64")
    return Ids(crossed, crossed)


@ids_of.register
def _(column: WeightedCategoricalColumn, operations: Operations) -> Ids:
    found = ids_of(column.categorical_column, operations)
    weights = operations.numbers(column.weight_feature_key, column.name, found.ids.width)
    return found._replace(weights=weights.name)


@ids_of.register
def _(column: SequenceCategoricalColumn, operations: Operations) -> Ids:
    return ids_of(column.categorical_column, operations)


def _check_spelling(column: Any) -> None:
    spelling = spelling_of(column)
    if spelling is not None:
        option = "dates" if spelling is DATES else "truths"
        raise ExportError(
            f"The {spelling.kind}s of {column.name!r} are converted to one form first, but this format has no "
            f"operation for that. Export as stablehlo, or train with {option}=False. "
            "A value is then known only as the training data writes it."
        )


def outputs_of(output: str, column: Any, operations: Operations) -> dict[str, tuple[str, Feature]]:
    """Writes the host operations of a column. Returns the values and their features by the names of the arrays.

    Raises:
        ExportError: there are no operations for the column or for the receiver's features.
    """
    if isinstance(column, SequenceNumericColumn):
        return _sequence_of_numbers(output, column, operations)
    assert isinstance(column, CategoricalColumn)
    found = ids_of(column, operations)
    ids = operations.add(lambda name: Cast(input=found.ids.name, output=name, dtype="int32"))
    made = {f"{output}.ids": (ids, Feature((None, found.ids.width), "int32"))}
    if found.weights is not None:
        made[f"{output}.weights"] = (found.weights, Feature((None, found.ids.width), "float32"))
    if isinstance(column, SequenceCategoricalColumn):
        lengths = operations.add(lambda name: Lengths(input=found.rows.name, output=name))
        made[f"{output}.lengths"] = (lengths, Feature((None,), "int32"))
    return made


def _sequence_of_numbers(
    output: str, column: SequenceNumericColumn, operations: Operations
) -> dict[str, tuple[str, Feature]]:
    if column.fill is not None:
        raise ExportError(
            f"The sequences of {column.name!r} end where fill= begins, but this format has no operation for that. "
            "Export as stablehlo."
        )
    found = operations.places(column.key, column.name).width // column.width
    steps = column.max_values or found
    flat = operations.numbers(column.key, column.name, steps * column.width, column.default_value)
    shape = (steps, *column.shape)
    numbers = operations.add(lambda name: Reshape(input=flat.name, output=name, shape=shape))
    lengths = operations.add(lambda name: FullLengths(input=flat.name, output=name, steps=min(found, steps)))
    return {
        f"{output}.numbers": (numbers, Feature((None, *shape), "float32")),
        f"{output}.lengths": (lengths, Feature((None,), "int32")),
    }
