"""Converts Arrow arrays to numpy columns."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

import numpy as np

from estimator_inputs.reading.ragged import Column, Ragged
from estimator_inputs.table.types import STRING, ColumnType, arrow_type, is_word

_WHOLE = (r"\.0+(Z?|[+-]\d{4})$", r"\1")
#: Replacements in the texts of times, by the unit of the file. Whole seconds have no fraction, as in a CSV file. Other
#: fractions have six digits, as Python writes them, or nine if needed.
_FRACTIONS = {
    "s": (_WHOLE,),
    "ms": (_WHOLE, (r"(\.\d{3})(Z?|[+-]\d{4})$", r"\1000\2")),
    "us": (_WHOLE,),
    "ns": (_WHOLE, (r"(\.\d{6})000(Z?|[+-]\d{4})$", r"\1\2")),
}


def to_column(array: Any, kind: ColumnType) -> tuple[Column, np.ndarray | None]:
    """Returns an Arrow array as a column.

    Args:
        array: an array of the Arrow type of `kind`, or of a type that can be cast to it.
        kind: the type of the column.

    Returns:
        The column, and the rows without a value and without a default as bool[n], or None if there are no such rows.

    Raises:
        pyarrow.ArrowInvalid: the array cannot be cast. Only the numbers 0 and 1 are truth values.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        array = _in_one_piece(array)
    wanted = arrow_type(kind)
    if kind.sizes and pa.types.is_fixed_size_list(array.type):
        return _of_one_size(array, kind)
    if kind.listed and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return _listed(array, kind)
    if array.type != wanted and not _is_text(array.type, kind):
        if pa.types.is_duration(array.type) and kind.dtype == STRING:
            array = _in_seconds(array)
        if pa.types.is_decimal(array.type) and kind.dtype == np.float32:
            array = array.cast(pa.float64())  # Arrow's cast to float32 is another number than the nearest
        exact = kind.dtype == STRING or kind.dtype.kind != "f"  # large whole numbers are rounded, as those of text are
        timed = pa.types.is_time(array.type) or pa.types.is_timestamp(array.type)
        replaced = _FRACTIONS[array.type.unit] if timed and kind.dtype == STRING else ()
        if kind.dtype == bool and not _are_truths(array):  # Arrow casts 2 and NaN to true
            raise pa.ArrowInvalid("a number is neither 0 nor 1")
        array = array.cast(wanted, safe=exact)
        for pattern, text in replaced:
            array = cast("Any", pc).replace_substring_regex(array, pattern, text)
    return _listed(array, kind) if kind.listed else _flat(array, kind)


def _are_truths(array: Any) -> bool:
    """Returns whether an array has no numbers other than 0 and 1."""
    known = array.drop_null().to_numpy(zero_copy_only=False)
    return known.dtype.kind not in "iuf" or bool(((known == 0) | (known == 1)).all())


def _in_seconds(array: Any) -> Any:
    """Returns durations as texts of seconds, because a count would depend on the unit of the file."""
    import pyarrow as pa

    places = {"s": 0, "ms": 3, "us": 6, "ns": 9}[array.type.unit]
    counts = array.cast(pa.int64()).to_pylist()
    # normalize removes the zeros that a finer unit adds
    return pa.array([None if n is None else f"{Decimal(n).scaleb(-places).normalize():f}" for n in counts], pa.string())


def plain_array(array: Any) -> Any:
    """Returns an Arrow array in one piece, without dictionaries and views, because few functions support these."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = _in_one_piece(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = pa.DictionaryArray.from_arrays(array.indices, plain_array(array.dictionary)).dictionary_decode()
    if str(array.type) in ("string_view", "binary_view"):
        return array.cast(pa.large_string() if "string" in str(array.type) else pa.large_binary())
    if any(word in str(array.type) for word in ("view", "dictionary", "extension")):
        return _plain_lists(array)
    return array


def _plain_lists(array: Any) -> Any:
    import pyarrow as pa

    gone = array.is_null() if array.null_count else None
    types, arrow = pa.types, array.type
    if types.is_fixed_size_list(arrow):
        return pa.FixedSizeListArray.from_arrays(plain_array(_items(array)), arrow.list_size, mask=gone)
    if types.is_list(arrow) or types.is_large_list(arrow):
        offsets = pa.array(array.offsets.to_numpy())  # from_arrays refuses a slice together with a mask
        return type(array).from_arrays(offsets, plain_array(array.values), mask=gone)
    return array


def _items(array: Any) -> Any:
    """Returns the items of lists of one size, including those of missing rows, which `flatten` omits."""
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def _of_one_size(array: Any, kind: ColumnType) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns [rows, size, ...]. All items of a missing row are missing."""
    import pyarrow as pa

    rows, size = len(array), array.type.list_size
    items = _items(array)
    if array.null_count:
        items = items.take(pa.array(np.arange(rows * size), mask=np.repeat(_nulls(array), size)))
    inner = replace(kind, listed=len(kind.sizes) > 1, sizes=kind.sizes[1:])
    values, missing = to_column(items, inner)
    assert isinstance(values, np.ndarray)
    lost = None if missing is None else np.asarray(missing.reshape(rows, size).any(1))
    return values.reshape(rows, size, *values.shape[1:]), lost


def _in_one_piece(array: Any) -> Any:
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()  # combine_chunks would copy one chunk


def _flat(array: Any, kind: ColumnType) -> tuple[np.ndarray, np.ndarray | None]:
    missing = None
    if array.null_count:
        default = kind.default
        if default is None:
            if kind.dtype == STRING:
                default = b""
            else:
                missing = _nulls(array)
                default = kind.dtype.type(0)
        array = array.fill_null(_scalar(default, array.type))
    return _numpy(array, kind), missing


def _listed(array: Any, kind: ColumnType) -> tuple[Ragged, np.ndarray | None]:
    lengths = np.where(_nulls(array), 0, np.diff(array.offsets.to_numpy()).astype(np.int64))
    items, missing = to_column(array.flatten(), replace(kind, listed=False))
    assert isinstance(items, np.ndarray)
    fill: Any = b"" if kind.dtype == STRING else kind.dtype.type(-1 if kind.dtype.kind == "i" else 0)
    if kind.dtype.kind == "f" and kind.default is not None and np.isnan(kind.default):
        fill = kind.default
    lost = None
    if missing is not None:
        lost = np.zeros(len(lengths), bool)
        lost[np.repeat(np.arange(len(lengths)), lengths)[missing]] = True
    return Ragged(values=items, lengths=lengths, fill=fill), lost


def _numpy(array: Any, kind: ColumnType) -> np.ndarray:
    import pyarrow as pa

    if kind.dtype == STRING:
        return array.cast(pa.binary()).to_numpy(zero_copy_only=False)
    values = array.to_numpy(zero_copy_only=False)
    if kind.dtype == np.float16:
        with np.errstate(over="ignore"):
            return values.astype(np.float16)
    return values


def _nulls(array: Any) -> np.ndarray:
    return array.is_null().to_numpy(zero_copy_only=False)


def _is_text(arrow: Any, kind: ColumnType) -> bool:
    """Returns whether the values are text or bytes. These are not cast, because bytes need not be UTF-8."""
    return kind.dtype == STRING and not kind.listed and is_word(arrow)


def _scalar(value: Any, arrow: Any) -> Any:
    import pyarrow as pa

    return pa.scalar(
        value if isinstance(value, bytes) else value.item(), pa.binary() if isinstance(value, bytes) else arrow
    ).cast(arrow)
