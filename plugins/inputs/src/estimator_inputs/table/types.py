"""The types of columns: numpy dtypes and strings, and the Arrow types with which they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_inputs.reading.vocabulary import Vocabularies, Vocabulary, vocabulary_of

STRING = np.dtype(object)
#: The advice about a real number in a column whose first rows have integers.
READ_AS_REAL = "; if the number is right, read the column as 'float32' (column_types)"


@dataclass(frozen=True, kw_only=True)
class ColumnType:
    """The type of a column that is read from a file.

    Attributes:
        dtype: the dtype of the array. Strings have object, and become bytes objects.
        default: the value for empty fields. None: numbers are required, and strings are empty.
        listed: whether every row is a list of values.
        sizes: the sizes of lists of one size, from the outermost. Empty: the lengths differ between rows.
        exact: whether integers that the float would round are refused. If a user sets the type, they are rounded.
        vocabulary: the allowed values. None: all values are allowed.
        known: whether a value determined the type. False: there was none, and the column is read as strings.
    """

    dtype: np.dtype[Any]
    default: Any = None
    listed: bool = False
    sizes: tuple[int, ...] = ()
    exact: bool = False
    vocabulary: Vocabulary | None = None
    known: bool = True

    @property
    def name(self) -> str:
        """The name of the type in messages."""
        item = "string" if self.dtype == STRING else self.dtype.name
        return f"list of {item}" if self.listed else item


def column_type(name: str, given: Any) -> ColumnType:
    """Returns the type that a user set: a numpy dtype, `str` or "string".

    Raises:
        ArgumentTypeError: the value is neither.

    Example:
        >>> column_type("age", "int32").name
        'int32'
    """
    if given in ("string", "str", "bytes", str, bytes, object):
        return ColumnType(dtype=STRING)
    try:
        dtype = np.dtype(given)
    except TypeError as error:
        raise ArgumentTypeError(
            f"column_types[{name!r}]: {given!r} is not a dtype. Use a numpy dtype or 'string'."
        ) from error
    if dtype.kind in "USO":
        return ColumnType(dtype=STRING)
    if dtype.kind not in "iufb" or dtype.itemsize > 8:
        raise ArgumentTypeError(f"column_types[{name!r}]: {dtype} cannot be read. Use a number, bool or 'string'.")
    return ColumnType(dtype=dtype)


def with_defaults(
    types: Mapping[str, ColumnType], defaults: Mapping[str, Any] | Sequence[Any] | None
) -> dict[str, ColumnType]:
    """Returns `types` with the values for empty fields.

    Args:
        types: the types by column, in the order of the file.
        defaults: the values by column, or one value per column in the order of `types`. None: the column has no
            default.

    Raises:
        ArgumentError: a column is missing, the number of defaults is wrong, or a value has the wrong type.

    Example:
        >>> int(with_defaults({"age": column_type("age", "int64")}, {"age": 7})["age"].default)
        7
    """
    if defaults is None:
        return dict(types)
    if not isinstance(defaults, Mapping):
        if len(defaults) != len(types):
            raise ArgumentError(
                f"column_defaults has {len(defaults)} values, but there are {len(types)} columns: {', '.join(types)}."
            )
        defaults = dict(zip(types, defaults, strict=True))
    check_names("column_defaults", defaults, types)
    return {name: _with_default(name, kind, defaults.get(name)) for name, kind in types.items()}


def with_vocabularies(types: Mapping[str, ColumnType], vocabularies: Vocabularies | None) -> dict[str, ColumnType]:
    """Returns `types` with the allowed values.

    Raises:
        ArgumentError, ArgumentTypeError: a column is missing, or cannot hold a token.
    """
    given = {} if vocabularies is None else vocabularies
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"vocabularies must be a dict of lists by column, given: {given!r:.200}.")
    check_names("vocabularies", given, types)
    found: dict[str, Vocabulary] = {}
    for name, tokens in given.items():
        kind = types[name]
        found[name] = vocabulary_of(name, tokens, kind.dtype, () if kind.default is None else (kind.default,))
    return {name: replace(kind, vocabulary=found.get(name)) for name, kind in types.items()}


def check_names(argument: str, given: Any, known: Any, where: str = "") -> None:
    """Refuses names of columns that do not exist.

    Args:
        argument: the name of the argument with the names.
        given: the names.
        known: the names of the existing columns.
        where: the file of the columns, for the message.

    Raises:
        ArgumentError: a column does not exist. The message names it.
    """
    unknown = [name for name in given if name not in known]
    if unknown:
        told = f" ({where})" if where else ""
        raise ArgumentError(
            f"{argument} names {', '.join(map(repr, unknown))}; the columns are {', '.join(known)}{told}."
        )


def summary_of(types: Mapping[str, ColumnType]) -> str:
    """Returns the names and types of columns, for the fingerprint of a position."""
    return " ".join(
        f"{name}:{kind.name}{f' in {kind.vocabulary.summary}' if kind.vocabulary else ''}"
        for name, kind in types.items()
    )


def arrow_type(kind: ColumnType) -> Any:
    """Returns the Arrow type with which a column is read."""
    import pyarrow as pa

    dtype = np.dtype(np.float32) if kind.dtype == np.float16 else kind.dtype  # Arrow cannot read float16 from text
    item = pa.string() if dtype == STRING else pa.from_numpy_dtype(dtype)
    return pa.list_(item) if kind.listed else item


def inferred(arrow: Any) -> ColumnType:
    """Returns the column type for an Arrow type: a number, a bool, or else a string."""
    import pyarrow as pa

    types = pa.types
    if types.is_fixed_size_list(arrow):
        item = inferred(arrow.value_type)
        return replace(item, listed=True, sizes=(arrow.list_size, *item.sizes))
    if types.is_list(arrow) or types.is_large_list(arrow):
        return replace(_padded(inferred(arrow.value_type)), listed=True, sizes=())
    if types.is_boolean(arrow):
        return ColumnType(dtype=np.dtype(bool))
    if types.is_integer(arrow):
        return ColumnType(dtype=np.dtype(str(arrow)))  # numpy has the same names
    if types.is_floating(arrow) or types.is_decimal(arrow):
        return ColumnType(dtype=np.dtype(np.float32), exact=True)
    return ColumnType(dtype=STRING, known=not types.is_null(arrow))


def item_type(arrow: Any) -> Any:
    """Returns the item type of lists, and of nested lists of one size. Lists of any size cannot be nested."""
    import pyarrow as pa

    outer = arrow
    while pa.types.is_fixed_size_list(arrow):
        arrow = arrow.value_type
    one_level = arrow is outer and (pa.types.is_list(arrow) or pa.types.is_large_list(arrow))
    return arrow.value_type if one_level else arrow


def is_period(field: Any) -> bool:
    """Returns whether an Arrow field holds periods of pandas. Arrow knows them only in processes that import pandas,
    and otherwise reads their numbers.
    """
    stored = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    return "pandas.period" in (stored, getattr(field.type, "extension_name", ""))


def is_word(arrow: Any) -> bool:
    """Returns whether the values of an Arrow type are words or bytes."""
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_one(arrow) for is_one in kinds)


def alike(first: Any, other: Any) -> bool:
    """Returns whether two Arrow types have the same kind of values, such as numbers, words or times.

    Example:
        >>> import pyarrow as pa
        >>> alike(pa.int32(), pa.float64()), alike(pa.int64(), pa.bool_()), alike(pa.string(), pa.null())
        (True, False, True)
    """
    import pyarrow as pa

    types = pa.types
    if first == other or (types.is_null(other) and not types.is_fixed_size_list(first)):
        return True
    if types.is_dictionary(first):
        return alike(first.value_type, other)
    if types.is_dictionary(other):
        return alike(first, other.value_type)
    if types.is_fixed_size_list(first):
        same = types.is_fixed_size_list(other) and first.list_size == other.list_size
        return same and alike(first.value_type, other.value_type)
    if types.is_list(first) or types.is_large_list(first):
        return hasattr(other, "value_type") and alike(first.value_type, other.value_type)
    return _meaning(first) == _meaning(other)


def counts_units(arrow: Any, kind: ColumnType) -> bool:
    """Returns whether a column reads times or durations as integers, which count units of the file.

    Example:
        >>> import pyarrow as pa
        >>> counts_units(pa.timestamp("ms"), column_type("at", "int64")), counts_units(pa.int32(), inferred(pa.int32()))
        (True, False)
    """
    import pyarrow as pa

    return kind.dtype != STRING and pa.types.is_temporal(item_type(arrow))


def unit_of(arrow: Any) -> str | None:
    """Returns the unit of the times or durations of a column, and None for dates and other values.

    Example:
        >>> import pyarrow as pa
        >>> unit_of(pa.timestamp("ms", "UTC")), unit_of(pa.list_(pa.duration("s"))), unit_of(pa.null())
        ('ms', 's', None)
    """
    return getattr(item_type(arrow), "unit", None)


def _meaning(arrow: Any) -> str:
    import pyarrow as pa

    types = pa.types
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow):
        return "number"
    text = str(arrow)
    if types.is_null(arrow) or any(word in text for word in ("string", "binary")):
        return "word"
    return "time" if types.is_time(arrow) else text.split("[")[0]


def _padded(item: ColumnType) -> ColumnType:
    """Returns the type for items of lists that are padded with -1, which unsigned numbers cannot represent."""
    if item.dtype.kind != "u":
        return item
    return replace(item, dtype=np.dtype(f"int{min(64, 16 * item.dtype.itemsize)}"))


def _with_default(name: str, kind: ColumnType, default: Any) -> ColumnType:
    if default is None:
        return kind
    try:
        if kind.dtype == STRING:
            value: Any = default.encode() if isinstance(default, str) else bytes(default)
        else:
            value = kind.dtype.type(default)
            if value != default and not (isinstance(default, float) and np.isnan(default)):
                raise ValueError(f"it would become {value!r}")
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"column_defaults[{name!r}] is {default!r}, and the column is of type {kind.name} ({error}). "
            f"Give another default, or column_types={{{name!r}: ...}}."
        ) from error
    return replace(kind, default=value)
