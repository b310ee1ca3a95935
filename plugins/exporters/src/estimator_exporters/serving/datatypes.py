"""Conversion between the datatypes of the protocol and those of numpy."""

from __future__ import annotations

import json
import math
import operator
import struct
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import ml_dtypes
import numpy as np

from estimator_core.export import Feature
from estimator_exporters.bundle.not_finite import name_of
from estimator_exporters.bundle.object_arrays import objects
from estimator_exporters.serving.json_text import NON_FINITE
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


def has_datatype(dtype: str) -> bool:
    """Returns whether the protocol has the dtype of a Feature. It lacks complex numbers and floats of 8 bits.

    Example:
        >>> has_datatype("float32"), has_datatype("complex64")
        (True, False)
    """
    return dtype in _NAMES


def datatype(dtype: Any) -> str:
    """Returns the name that the protocol has for the dtype of a Feature or an array.

    Example:
        >>> datatype("float32"), datatype("string")
        ('FP32', 'BYTES')
    """
    known = _BY_DTYPE.get(dtype)
    if known is not None:
        return known
    name = str(dtype)
    return "BYTES" if name.startswith(("<U", "|S", "StringDType")) else _NAMES[name]


def tensor_metadata(name: str, feature: Feature) -> dict[str, Any]:
    """Returns the description of an input or an output in the metadata of a model.

    Example:
        >>> tensor_metadata("x", Feature(dtype="float32", shape=(None, 2)))
        {'name': 'x', 'datatype': 'FP32', 'shape': [-1, 2]}
    """
    shape = [-1 if size is None else size for size in feature.shape]
    return {"name": name, "datatype": datatype(feature.dtype), "shape": shape}


def from_bytes(name: str, content: memoryview, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Returns an array from the binary extension.

    Raises:
        BadRequestError: too few or too many bytes.
    """
    count = _count(shape)
    if name == "BYTES":
        return _strings(content, count, what).reshape(shape)
    dtype = NUMPY[name]
    if len(content) != count * dtype.itemsize:
        raise BadRequestError(
            f"{what}: shape {list(shape)} of {name} needs {count * dtype.itemsize} bytes, but the request has "
            f"{len(content)}"
        )
    raw = np.frombuffer(content, dtype if name != "BOOL" else np.uint8)
    return (raw != 0 if name == "BOOL" else raw).reshape(shape)


def to_bytes(array: np.ndarray) -> bytes:
    """Returns an array in the binary extension."""
    if datatype(array.dtype) != "BYTES":
        return np.ascontiguousarray(array).tobytes()
    items = [encoded(item) for item in array.reshape(-1).tolist()]
    return b"".join(part for item in items for part in (_LENGTH.pack(len(item)), item))


def from_json(name: str, data: list[Any], shape: tuple[int, ...], what: str, *, literals: bool = False) -> np.ndarray:
    """Returns an array from the numbers, booleans or strings of a JSON request, nested or flat.

    Floats that are not finite are the strings of `NON_FINITE`, or numbers if the text was read with `literals`. A long
    list is emptied in pieces, because freeing it at once would block other threads.

    Raises:
        BadRequestError: the values or their number do not match the datatype and the shape.
    """
    if name == "BF16":
        raise BadRequestError(f"{what}: BF16 has no form in JSON; send it in binary")
    flat = _flat(data, shape, what)
    if len(flat) != _count(shape):
        raise BadRequestError(
            f"{what}: shape {list(shape)} needs {_count(shape)} values, but the request has {len(flat)}"
        )
    width = max(len(flat) // shape[0] if shape and shape[0] else 1, 1)
    if len(flat) <= _SLICE:
        return _from_values(name, flat, what, literals, width).reshape(shape)
    found = np.empty(len(flat), NUMPY[name])
    while flat:
        start = (len(flat) - 1) // _SLICE * _SLICE
        piece = flat[start:]
        del flat[start:]
        found[start : start + len(piece)] = _from_values(name, piece, what, literals, width, start)
    return found.reshape(shape)


def _from_values(name: str, values: list[Any], what: str, literals: bool, width: int = 1, first: int = 0) -> np.ndarray:
    """Converts values of one datatype. `first` is the number of earlier values, and `width` the number of values per
    row.
    """
    dtype = NUMPY[name]
    kinds = _JSON_KINDS[dtype.kind]
    if not kinds.issuperset(map(type, values)):
        for place, value in enumerate(values, first):
            if type(value) not in kinds and not (dtype.kind == "f" and type(value) is str and value in NON_FINITE):
                told = f"{str(value)[:40]!r} is not of type {name}"
                raise BadRequestError(f"{what}: {told}, in row {place // width}. Send {_WANTED[dtype.kind]}.")
    if name == "BYTES":
        return objects([encoded(value) for value in values])
    try:
        with np.errstate(over="ignore"):
            found = np.array(values, dtype)
    except (OverflowError, ValueError) as error:
        raise BadRequestError(f"{what}: a value is outside the range of {name}") from error
    if dtype.kind == "f" and not np.isfinite(found).all():
        named = [isinstance(value, str) or (literals and not math.isfinite(value)) for value in values]
        if not np.array_equal(~np.isfinite(found), named):
            raise BadRequestError(f"{what}: a value is outside the range of {name}")
    return found


def json_values(array: np.ndarray, what: str) -> str:
    """Returns the values of an array as the elements of a flat JSON list.

    Non-finite floats become strings of `NON_FINITE`.

    Raises:
        BadRequestError: bfloat16, or bytes that are not UTF-8.

    Example:
        >>> json_values(np.array([1.5, np.nan]), "output 'y'")
        '1.5,"NaN"'
    """
    name = datatype(array.dtype)
    if name == "BF16":
        raise BadRequestError(f"{what}: BF16 has no form in JSON; ask for it in binary")
    flat = array.reshape(-1)
    if len(flat) <= _SLICE:
        return _ENCODER.encode(json_list(flat, what))[1:-1]
    return ",".join(_ENCODER.encode(json_list(piece, what))[1:-1] for piece in _slices(flat))


def json_nested(array: np.ndarray, what: str) -> str:
    """Returns an array as nested JSON lists. A single value is written without a list.

    Raises:
        BadRequestError: bfloat16, or bytes that are not UTF-8.

    Example:
        >>> json_nested(np.array([[1, 2], [3, 4]]), "output 'y'")
        '[[1,2],[3,4]]'
    """
    if array.size > _SLICE:
        if array.ndim == 1:
            return f"[{json_values(array, what)}]"
        return f"[{','.join([json_nested(row, what) for row in array])}]"
    if datatype(array.dtype) == "BF16":
        raise BadRequestError(f"{what}: BF16 has no form in JSON; ask for it in binary")
    return _ENCODER.encode(objects(json_list(array.reshape(-1), what)).reshape(array.shape).tolist())


def json_list(flat: np.ndarray, what: str) -> list[Any]:
    """Returns the values of an array with one axis, in the form that the `json` module accepts.

    Raises:
        BadRequestError: bytes that are not UTF-8.
    """
    if flat.dtype.kind == "f" and not np.isfinite(flat).all():
        return [value if np.isfinite(value) else name_of(value) for value in flat.tolist()]
    values = flat.tolist()
    if datatype(flat.dtype) != "BYTES":
        return values
    try:
        return [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    except UnicodeDecodeError as error:
        raise BadRequestError(f"{what}: its bytes are not text; ask for it in binary") from error


def _slices(flat: np.ndarray) -> Iterator[np.ndarray]:
    return (flat[start : start + _SLICE] for start in range(0, len(flat), _SLICE))


def encoded(item: Any) -> bytes:
    """Returns a string or bytes as bytes."""
    return item if isinstance(item, bytes) else str(item).encode()


_SLICE = 2**13  # values converted in one call, during which no other thread runs
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_JSON_KINDS: dict[str, frozenset[type]] = {
    "b": frozenset({bool}),
    "i": frozenset({int}),
    "u": frozenset({int}),
    "f": frozenset({int, float}),
    "O": frozenset({str, bytes}),  # bytes: decoded base64
}
_WANTED = {
    "b": "true or false",
    "i": "a whole number",
    "u": "a whole number",
    "f": "a number",
    "O": "a string",
}


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _flat(data: Any, shape: tuple[int, ...], what: str) -> list[Any]:
    if not isinstance(data, list):
        raise BadRequestError(f"{what}: data must be a list")
    counts = frozenset(accumulate(shape, operator.mul, initial=1))  # the number of lists on each level
    while data and isinstance(data[0], list):
        width = len(data[0])
        if not all(isinstance(row, list) and len(row) == width for row in data):
            raise BadRequestError(f"{what}: data must be nested evenly")
        if len(data) not in counts:
            raise BadRequestError(f"{what}: data must be flat, or nested as its shape {list(shape)}")
        data = unnested(data)
    return data


def unnested(rows: list[list[Any]]) -> list[Any]:
    """Returns the values of all rows. Empties `rows` one by one, because freeing it at once blocks other threads."""
    rows.reverse()
    found: list[Any] = []
    while rows:
        found += rows.pop()
    return found


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
    return objects(found)
