"""Arrow arrays as columns of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator_inputs.reading.ragged import Column, Ragged
from estimator_inputs.table.types import STRING, ColumnType, arrow_type


def to_column(array: Any, kind: ColumnType) -> tuple[Column, np.ndarray | None]:
    """An Arrow array as a column.

    Args:
        array: an array of the Arrow type of `kind`, or of one that can be cast to it.
        kind: the type that it becomes.

    Returns:
        The column, and which rows lack a value without a default (bool[n]); None if all have one.

    Raises:
        pyarrow.ArrowInvalid: the array cannot be cast.
    """
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = _in_one_piece(array)
    wanted = arrow_type(kind)
    if array.type != wanted and not _is_text(array.type, kind):
        if pa.types.is_fixed_size_list(array.type) and kind.listed and not array.null_count:
            size = array.type.list_size
            values, missing = to_column(array.flatten(), ColumnType(dtype=kind.dtype, default=kind.default))
            lost = None if missing is None else np.asarray(missing.reshape(-1, size).any(1))
            assert isinstance(values, np.ndarray)
            return values.reshape(-1, size), lost
        exact = kind.dtype == STRING or kind.dtype.kind != "f"  # large whole numbers are rounded, as those of text are
        array = array.cast(wanted, safe=exact)
    return _listed(array, kind) if kind.listed else _flat(array, kind)


def plain_array(array: Any) -> Any:
    """An Arrow array in one piece, without dictionaries and views, which few functions accept."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = _in_one_piece(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = pa.DictionaryArray.from_arrays(array.indices, plain_array(array.dictionary)).dictionary_decode()
    if str(array.type) in ("string_view", "binary_view"):
        return array.cast(pa.large_string() if "string" in str(array.type) else pa.large_binary())
    return array


def _in_one_piece(array: Any) -> Any:
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()  # one piece would be copied


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
    items, missing = _flat(array.flatten(), ColumnType(dtype=kind.dtype, default=kind.default))
    fill: Any = b"" if kind.dtype == STRING else kind.dtype.type(-1 if kind.dtype.kind == "i" else 0)
    lost = None
    if missing is not None:
        lost = np.zeros(len(lengths), bool)
        lost[np.repeat(np.arange(len(lengths)), lengths)[missing]] = True
    return Ragged(values=items, lengths=lengths, fill=fill), lost


def _numpy(array: Any, kind: ColumnType) -> np.ndarray:
    import pyarrow as pa

    if kind.dtype == STRING:
        return array.cast(pa.binary()).to_numpy(zero_copy_only=False)
    return array.to_numpy(zero_copy_only=False)


def _nulls(array: Any) -> np.ndarray:
    return array.is_null().to_numpy(zero_copy_only=False)


def _is_text(arrow: Any, kind: ColumnType) -> bool:
    import pyarrow as pa

    return not kind.listed and kind.dtype == STRING and (pa.types.is_binary(arrow) or pa.types.is_string(arrow))


def _scalar(value: Any, arrow: Any) -> Any:
    import pyarrow as pa

    return pa.scalar(
        value if isinstance(value, bytes) else value.item(), pa.binary() if isinstance(value, bytes) else arrow
    ).cast(arrow)
