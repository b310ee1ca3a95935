"""The cells of a column for a batch of rows: their values in one flat Arrow array, and the rows without values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from estimator_inputs.table.arrays import plain_array

#: "number", "word" (text, bytes, bool), "time" (seconds since 1970), or "other", of which only missing rows are
#: counted.
CellKind = Literal["number", "word", "time", "other"]
_FLOATS = {32: "float32", 64: "float64"}


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cells of a column.

    Attributes:
        kind: the kind of the values.
        dtype: the type, such as "int64", "float32", "string", "bool", "timestamp"; "null" if no row has a value.
        values: a pyarrow.Array of all values, row after row, without missing ones.
        rows: int64[values], the row of each value.
        missing: int64[n], the rows without a complete value: null, NaN, empty text, an empty list, or a list with one
            of these.
        shape: the shape of one row, with None for a size that differs between rows.
        sizes: the (smallest, largest) number of values of a row that has values. None: each row has one.
        folds: whether lists of one size in all rows count as rows of that shape, and lists of one value as single
            values, as in tf.Examples.
        items: int64[values], the place of each value among the items of all lists. None: the rows are not lists.
        ends: int64[n], the place after the last item of each row. None: the rows are not lists.
    """

    kind: CellKind
    dtype: str
    values: Any
    rows: np.ndarray
    missing: np.ndarray
    shape: tuple[int | None, ...] = ()
    sizes: tuple[int, int] | None = None
    folds: bool = False
    items: np.ndarray | None = None
    ends: np.ndarray | None = None

    def first(self, rows: int) -> Cells:
        """Returns the cells of the first `rows` rows."""
        kept = int(np.searchsorted(self.rows, rows))
        values, missing = self.values.slice(0, kept), self.missing[self.missing < rows]
        items, ends = None if self.items is None else self.items[:kept], None if self.ends is None else self.ends[:rows]
        return replace(self, values=values, rows=self.rows[:kept], missing=missing, items=items, ends=ends)


def cells_of(column: Any) -> Cells:
    """Returns the cells of an Arrow array, a numpy array or a list.

    Args:
        column: the column. Its first axis is the row.

    Raises:
        pyarrow.ArrowInvalid, pyarrow.ArrowTypeError: the column has values of several types.

    Example:
        >>> import pyarrow as pa
        >>> cells = cells_of(pa.array([1.5, None, float("nan"), 2.0]))
        >>> cells.values.to_pylist(), cells.rows.tolist(), cells.missing.tolist()
        ([1.5, 2.0], [0, 3], [1, 2])
    """
    import pyarrow as pa

    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = plain_array(column)
    if not isinstance(column, pa.Array):
        return _of_numpy(np.asarray(column))
    if _is_list(column.type):
        return _of_lists(column)
    return _leaf(column)


def other_cells(array: Any, dtype: str) -> Cells:
    """Returns the cells of an Arrow array of which only missing rows are counted."""
    missing = np.flatnonzero(_nulls(array))
    return Cells(kind="other", dtype=dtype, values=array[:0], rows=np.arange(0), missing=missing)


def plain_values(values: Any) -> list[Any]:
    r"""Returns the values of a flat Arrow array as Python objects.

    Bytes become text, with backslashes for invalid UTF-8.

    Example:
        >>> import pyarrow as pa
        >>> plain_values(pa.array([b"a", b"\xff"])), plain_values(pa.array([1, 2]))
        (['a', '\\xff'], [1, 2])
    """
    import pyarrow as pa

    if _is_text(values.type):
        return [value.decode(errors="backslashreplace") for value in values.cast(pa.large_binary()).to_pylist()]
    return values.to_pylist()


def ragged_cells(values: np.ndarray, lengths: np.ndarray) -> Cells:
    """Returns the cells of a feature of tf.Examples: values[total], row after row, and lengths as int64[rows]."""
    return replace(_grouped(cells_of(values), lengths, None), folds=True)


def _of_numpy(array: np.ndarray) -> Cells:
    import pyarrow as pa

    if array.ndim > 1:
        inner = _of_numpy(array.reshape(-1))
        each = int(np.prod(array.shape[1:]))
        grouped = _grouped(inner, np.full(len(array), each, np.int64), each)
        return replace(grouped, shape=tuple(array.shape[1:]))
    if array.dtype.kind in "OT":
        return cells_of(pa.array(array.tolist(), from_pandas=True))
    if array.dtype.kind == "V" or array.dtype == np.float16:  # bfloat16 and similar types
        array = array.astype(np.float32)
    return cells_of(pa.array(array))


def _of_lists(array: Any) -> Cells:
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(cast(Any, pc).list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    inner = cells_of(array.flatten())
    size = array.type.list_size if pa.types.is_fixed_size_list(array.type) else None
    return _grouped(inner, lengths, size)


def _grouped(inner: Cells, lengths: np.ndarray, size: int | None) -> Cells:
    """Groups the cells of items into rows of these lengths."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    missing = np.union1d(np.flatnonzero(lengths == 0), owner[inner.missing])
    filled = lengths[lengths > 0]
    sizes = (int(filled.min()), int(filled.max())) if filled.size else None
    ends = np.cumsum(lengths)
    return replace(
        inner,
        rows=owner[inner.rows],
        missing=missing,
        shape=(size, *inner.shape),
        sizes=None if size else sizes,
        items=inner.rows if inner.items is None else inner.items,
        ends=ends if inner.ends is None else np.append(0, inner.ends)[ends],
    )


def _leaf(array: Any) -> Cells:
    import pyarrow as pa
    import pyarrow.compute as pc

    types, arrow = pa.types, array.type
    if types.is_decimal(arrow) or types.is_float16(arrow):
        array = array.cast(pa.float64() if types.is_decimal(arrow) else pa.float32())
        arrow = array.type
    if types.is_floating(arrow):
        nan = np.isnan(_numpy(array.fill_null(np.nan)))
        return _kept(array, nan, "number", _FLOATS[arrow.bit_width])
    if types.is_integer(arrow):
        return _kept(array, _nulls(array), "number", str(arrow))
    if types.is_boolean(arrow):
        return _kept(array, _nulls(array), "word", "bool")
    if types.is_date(arrow) or types.is_timestamp(arrow):
        micro = array.cast(pa.timestamp("us", arrow.tz if types.is_timestamp(arrow) else None), safe=False)
        seconds = cast(Any, pc).divide(micro.cast(pa.int64()).cast(pa.float64(), safe=False), 1e6)
        return _kept(seconds, _nulls(array), "time", "date" if types.is_date(arrow) else "timestamp")
    if _is_text(arrow):
        empty = _numpy(pc.fill_null(cast(Any, pc).equal(cast(Any, pc).binary_length(array), 0), True))
        return _kept(array, empty, "word", "string")
    return other_cells(array, "null" if types.is_null(arrow) else str(arrow))


def _kept(array: Any, lacking: np.ndarray, kind: CellKind, dtype: str) -> Cells:
    import pyarrow as pa

    every = np.arange(len(array))
    if not lacking.any():
        return Cells(kind=kind, dtype=dtype, values=array, rows=every, missing=every[:0])
    kept = every[~lacking]
    return Cells(kind=kind, dtype=dtype, values=array.take(pa.array(kept)), rows=kept, missing=every[lacking])


def _nulls(array: Any) -> np.ndarray:
    return _numpy(array.is_null())


def _numpy(array: Any) -> np.ndarray:
    return array.to_numpy(zero_copy_only=False)


def _is_list(arrow: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow)


def _is_text(arrow: Any) -> bool:
    return any(word in str(arrow) for word in ("string", "utf8", "binary")) and "<" not in str(arrow)
