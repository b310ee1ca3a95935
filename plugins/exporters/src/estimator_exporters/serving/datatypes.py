"""The datatypes of the protocol and those of numpy."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np

from estimator_exporters.serving.refusals import BadRequestError

NUMPY = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BYTES": np.dtype(object),
}
_NAMES = {str(dtype): name for name, dtype in NUMPY.items()} | {"string": "BYTES"}
_BY_DTYPE: dict[Any, str] = {dtype: name for name, dtype in NUMPY.items()}  # str(dtype) is slow
_LENGTH = struct.Struct("<I")


def datatype(dtype: Any) -> str:
    """The protocol's name of a Feature's dtype or an array's.

    Example:
        >>> datatype("float32"), datatype("string")
        ('FP32', 'BYTES')
    """
    known = _BY_DTYPE.get(dtype)
    if known is not None:
        return known
    name = str(dtype)
    return "BYTES" if name.startswith(("<U", "|S", "StringDType")) else _NAMES[name]


def from_bytes(name: str, content: memoryview, shape: tuple[int, ...], what: str) -> np.ndarray:
    """An array of the binary extension.

    Raises:
        BadRequestError: too few or too many bytes.
    """
    count = _count(shape)
    if name == "BYTES":
        return _strings(content, count, what).reshape(shape)
    dtype = NUMPY[name]
    if len(content) != count * dtype.itemsize:
        raise BadRequestError(
            f"{what}: shape {list(shape)} of {name} takes {count * dtype.itemsize} bytes, the request has "
            f"{len(content)}"
        )
    raw = np.frombuffer(content, dtype if name != "BOOL" else np.uint8)
    return (raw != 0 if name == "BOOL" else raw).reshape(shape)


def to_bytes(array: np.ndarray) -> bytes:
    """An array in the binary extension."""
    if datatype(array.dtype) != "BYTES":
        return np.ascontiguousarray(array).tobytes()
    items = [encoded(item) for item in array.reshape(-1).tolist()]
    return b"".join(part for item in items for part in (_LENGTH.pack(len(item)), item))


def from_json(name: str, data: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """An array from the numbers, booleans or strings of a JSON request, nested or flat.

    Raises:
        BadRequestError: other values than the datatype has, or another number of them.
    """
    if name == "BF16":
        raise BadRequestError(f"{what}: BF16 has no form in JSON; send it in binary")
    flat = _flat(data, what)
    if len(flat) != _count(shape):
        raise BadRequestError(f"{what}: shape {list(shape)} takes {_count(shape)} values, the request has {len(flat)}")
    kinds = _JSON_KINDS[NUMPY[name].kind]
    for value in flat:
        if type(value) not in kinds:
            raise BadRequestError(f"{what}: {str(value)[:40]!r} is no {name}")
    if name == "BYTES":
        return np.array([value.encode() for value in flat], object).reshape(shape)
    try:
        return np.array(flat, NUMPY[name]).reshape(shape)
    except (OverflowError, ValueError) as error:
        raise BadRequestError(f"{what}: a value is out of the range of {name}") from error


def to_json(array: np.ndarray, what: str) -> list[Any]:
    """The values of an array, flat.

    Raises:
        BadRequestError: bfloat16, or bytes that are no text.
    """
    name = datatype(array.dtype)
    if name == "BF16":
        raise BadRequestError(f"{what}: BF16 has no form in JSON; ask for it in binary")
    values = array.reshape(-1).tolist()
    if name != "BYTES":
        return values
    try:
        return [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    except UnicodeDecodeError as error:
        raise BadRequestError(f"{what}: its bytes are no text; ask for it in binary") from error


def encoded(item: Any) -> bytes:
    """A string or bytes as bytes."""
    return item if isinstance(item, bytes) else str(item).encode()


_JSON_KINDS: dict[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (int, float),
    "V": (int, float),
    "O": (str,),
}


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _flat(data: Any, what: str) -> list[Any]:
    if not isinstance(data, list):
        raise BadRequestError(f"{what}: data must be a list")
    while data and isinstance(data[0], list):
        if not all(isinstance(row, list) for row in data):
            raise BadRequestError(f"{what}: data must be nested evenly")
        data = [value for row in data for value in row]
    return data


def _strings(content: memoryview, count: int, what: str) -> np.ndarray:
    found: list[bytes] = []
    start = 0
    while start < len(content) and len(found) < count:
        end = start + _LENGTH.size
        if end > len(content):
            break
        (length,) = _LENGTH.unpack(content[start:end])
        if end + length > len(content):
            break
        found.append(bytes(content[end : end + length]))
        start = end + length
    if len(found) != count or start != len(content):
        raise BadRequestError(f"{what}: its {len(content)} bytes are not {count} strings with their lengths")
    array = np.empty(count, object)
    array[:] = found
    return array
