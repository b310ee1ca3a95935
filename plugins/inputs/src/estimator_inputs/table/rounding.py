"""Finds numbers that a float cannot represent, because ids must not become other ids, and numbers must stay finite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from estimator_inputs.reading.ragged import Column, Ragged


def rounded(numbers: np.ndarray, dtype: np.dtype[Any]) -> Iterator[tuple[int, int]]:
    """Yields place and value of each integer that a float changes.

    Args:
        numbers: integers, including Python integers of any size.
        dtype: the dtype of the float.

    Example:
        >>> list(rounded(np.array([2**24, 2**24 + 1, 3, -(2**40) - 1]), np.dtype("float32")))
        [(1, 16777217), (3, -1099511627777)]
    """
    exact = 2 << np.finfo(dtype).nmant  # all integers up to this one are exact floats
    places = np.flatnonzero((numbers > exact) | (numbers < -exact))
    for place, number in zip(places.tolist(), numbers[places].tolist(), strict=True):
        if abs(number) > float(np.finfo(dtype).max) or int(dtype.type(number)) != number:
            yield place, int(number)


def rounded_rows(array: Any, dtype: np.dtype[Any]) -> Iterator[tuple[int, int]]:
    """Yields row and value of each integer of an Arrow array that a float changes.

    Args:
        array: an array. Real numbers, words and lists of these contain no integers.
        dtype: the dtype of the float.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    item = array.type
    while pa.types.is_list(item) or pa.types.is_large_list(item) or pa.types.is_fixed_size_list(item):
        item = item.value_type
    if not _is_whole(item):
        return
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_nested(array.type):
        parents = cast(Any, pc).list_parent_indices(array).to_numpy()
        yield from ((int(parents[place]), number) for place, number in rounded_rows(array.flatten(), dtype))
    else:
        yield from rounded(_numbers(array), dtype)


def infinite_rows(array: Any, column: Column) -> Iterator[tuple[int, Any]]:
    """Yields row and value of each finite number of an Arrow array that is infinite in the column.

    Args:
        array: numbers, lists of numbers, or texts of numbers.
        column: the converted array.

    Example:
        >>> import pyarrow as pa
        >>> list(infinite_rows(pa.array([1e39, np.inf]), np.array([np.inf, np.inf], np.float32)))
        [(0, 1e+39)]
    """
    import pyarrow as pa

    values = column.values if isinstance(column, Ragged) else column
    if pa.types.is_floating(array.type) and array.type.bit_width <= 8 * values.dtype.itemsize:
        return  # the conversion is exact, as for most columns
    if values.dtype.kind != "f" or not (infinite := np.isinf(values)).any():
        return
    if pa.types.is_floating(array.type):  # most of these were infinite before the conversion
        infinite = infinite & np.isfinite(array.to_numpy(zero_copy_only=False)).reshape(infinite.shape)
    if isinstance(column, Ragged):
        rows = np.unique(np.repeat(np.arange(len(column.lengths)), column.lengths)[infinite])
    else:
        rows = np.flatnonzero(infinite.reshape(len(values), -1).any(1))
    for row in rows.tolist():
        found = next((item for item in items_of(array[row].as_py()) if becomes_infinite(item, values.dtype)), None)
        if found is not None:
            yield row, found


def items_of(value: Any) -> Iterator[Any]:
    """Yields the items of a nested list, or a value that is not a list."""
    if not isinstance(value, list):
        yield value
        return
    items: list[Any] = value
    for item in items:
        yield from items_of(item)


def becomes_infinite(value: Any, dtype: np.dtype[Any]) -> bool:
    """Returns whether a finite number, or a text of one, becomes infinite as a float of this dtype.

    Example:
        >>> [becomes_infinite(value, np.dtype("float32")) for value in (1e39, "-1e39", 10**400, float("inf"), None)]
        [True, True, True, False, False]
    """
    if value is None or "inf" in str(value).lower():
        return False
    try:
        with np.errstate(over="ignore"):
            return bool(np.isinf(np.float64(value).astype(dtype)))
    except OverflowError:  # an integer out of the range of any float
        return True


def _is_whole(arrow: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(arrow) or (pa.types.is_decimal(arrow) and arrow.scale <= 0)


def _numbers(array: Any) -> np.ndarray:
    """Returns the integers of a flat array, with 0 for missing values and for small decimals."""
    import pyarrow as pa

    if pa.types.is_integer(array.type):
        return array.fill_null(0).to_numpy(zero_copy_only=False)
    numbers = np.zeros(len(array), object)
    near = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    large = np.flatnonzero(np.abs(near) >= 2 << np.finfo(np.float32).nmant)
    numbers[large] = [int(number) for number in array.take(pa.array(large)).to_pylist()]
    return numbers
