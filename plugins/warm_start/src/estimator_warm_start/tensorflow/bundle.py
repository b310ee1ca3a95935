"""The tensors of a checkpoint of TensorFlow, stored in `NAME.index` and its data files."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, CheckpointCorruptError
from estimator_warm_start.tensorflow.checksums import masked_crc32c
from estimator_warm_start.tensorflow.slices import WHOLE_AXIS, slice_key
from estimator_warm_start.tensorflow.sstable import read_table, varint

# The names of the numbers of tensorflow.DataType.
_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
_STRING = 7
#: The part of a name that a canned Estimator of TensorFlow 1 gave to the slots of a part of a variable. Each such slot
#: has the shape of the whole slot. The end of `part_N/` remains, as many characters as the scope of the model has
#: (`linear/`, `dnn/`).
_FIRST_PART = re.compile(r"(?<=/)(?:par)?t_0/")
_Extents = list[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[bytes, ...]


def read_tensorflow(
    prefix: str | os.PathLike[str], wanted: Callable[[str], bool] = lambda name: True
) -> dict[str, np.ndarray]:
    """Returns the numbers of a checkpoint by name: variables, slots of optimizers, counters. Texts are left out.

    The slots of the parts of a variable are joined under the name of the first one: `w/part_0/Adam`. Any other tensor
    of which only a part is stored is left out.

    Args:
        prefix: the prefix that `tensorflow_prefix` returns.
        wanted: a function that returns whether to read a name.

    Raises:
        ArgumentError: a data file is missing.
        CheckpointCorruptError: a file is damaged or incomplete.

    Source: tensorflow/core/protobuf/tensor_bundle.proto.
    """
    index = Path(f"{prefix}.index")
    table = read_table(index.read_bytes(), str(index))
    shards = _fields(table.get(b"", b"")).get(1, [1])[0]
    data: dict[int, np.ndarray] = {}

    def path(shard: int) -> Path:
        return Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}")

    def read(name: str, entry: _Entry) -> np.ndarray:
        if entry.shard not in data:
            data[entry.shard] = _open(path(entry.shard))
        return _array(name, entry, data[entry.shard], path(entry.shard))

    found: dict[str, np.ndarray] = {}
    for key, value in table.items():
        name = key.decode("utf-8", "replace")
        if not key or key.startswith(b"\0") or not wanted(name):  # the header, or a part of a variable
            continue
        entry = _entry(value)
        if entry.dtype == _STRING:
            continue
        array = _joined(name, entry, table, read) if entry.slices else read(name, entry)
        if array is not None:
            found[name] = array
    return found


def _joined(
    name: str, whole: _Entry, table: dict[bytes, bytes], read: Callable[[str, _Entry], np.ndarray]
) -> np.ndarray | None:
    """Returns a partitioned variable or the slots of its parts, joined; None: parts are missing."""
    parts = _parts(name, whole)
    if not _cover(parts, whole.shape):
        parts = _parts_of_all(name, whole, table)
    if not _cover(parts, whole.shape):
        return None
    array = np.zeros(whole.shape, _dtype(_known(name, whole)))
    for owner, extents in parts:
        key = slice_key(owner, extents)
        if key not in table:
            raise CheckpointCorruptError(f"The index has no part {extents} of the partitioned variable {owner!r}.")
        place = tuple(
            slice(None) if length == WHOLE_AXIS else slice(start, start + length) for start, length in extents
        )
        array[place] = read(owner, _entry(table[key]))
    return array


def _parts(name: str, entry: _Entry) -> list[tuple[str, _Extents]]:
    return [(name, [_extent(extent) for extent in _fields(part).get(1, [])]) for part in entry.slices]


def _parts_of_all(name: str, first: _Entry, table: dict[bytes, bytes]) -> list[tuple[str, _Extents]]:
    """Returns the parts of the slots `w/part_0/Adam`, `w/part_1/Adam`, ..., or [] if the name is not the first."""
    places = list(_FIRST_PART.finditer(name))
    if not places:
        return []
    place = places[-1]
    found = _parts(name, first)
    for number in itertools.count(1):
        left = f"part_{number}/"[-len(place[0]) :]
        other = f"{name[: place.start()]}{left}{name[place.end() :]}"
        entry = _entry(table.get(other.encode(), b""))
        if entry.shape != first.shape:
            return found
        found += _parts(other, entry)
    raise AssertionError("a checkpoint has finitely many names")


def _cover(parts: list[tuple[str, _Extents]], shape: tuple[int, ...]) -> bool:
    """Returns whether parts, which never overlap, are the whole."""
    sizes = [
        [size if length == WHOLE_AXIS else length for (_, length), size in zip(extents, shape, strict=True)]
        for _, extents in parts
    ]
    return sum(int(np.prod(each)) for each in sizes) == int(np.prod(shape))


def _extent(message: bytes) -> tuple[int, int]:
    fields = _fields(message)
    return fields.get(1, [0])[0], fields.get(2, [WHOLE_AXIS])[0]


def _known(name: str, entry: _Entry) -> str:
    if entry.dtype not in _DTYPES:
        raise CheckpointCorruptError(f"{name!r} is stored with a type that cannot be read (number {entry.dtype}).")
    return _DTYPES[entry.dtype]


def _open(path: Path) -> np.ndarray:
    if not path.is_file():
        raise ArgumentError(f"The checkpoint lacks its file {path}. Download it too.")
    return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)


def _array(name: str, entry: _Entry, data: np.ndarray, path: Path) -> np.ndarray:
    stored = data[entry.offset : entry.offset + entry.size].tobytes()
    dtype = _dtype(_known(name, entry))
    if len(stored) < entry.size or entry.size != dtype.itemsize * int(np.prod(entry.shape, dtype=np.int64)):
        raise CheckpointCorruptError(
            f"The data of {name!r} in {path} should be {entry.size} bytes at {entry.offset}, but the file has "
            f"{len(data)}: it is incomplete. Download it again."
        )
    if masked_crc32c(stored) != entry.checksum:
        raise CheckpointCorruptError(
            f"{path} is damaged: the data of {name!r} do not match the checksum in the index. Copy both files again."
        )
    return np.frombuffer(stored, dtype).reshape(entry.shape)


def _dtype(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name).newbyteorder("<")


def _entry(data: bytes) -> _Entry:
    fields = _fields(data)
    sizes = [_fields(dim).get(1, [0])[0] for dim in _fields(fields.get(2, [b""])[0]).get(2, [])]
    return _Entry(
        dtype=fields.get(1, [0])[0],
        shape=tuple(sizes),
        shard=fields.get(3, [0])[0],
        offset=fields.get(4, [0])[0],
        size=fields.get(5, [0])[0],
        checksum=int.from_bytes(fields.get(6, [b""])[0], "little"),
        slices=tuple(fields.get(7, [])),
    )


def _fields(message: bytes) -> dict[int, list[Any]]:
    """Returns the fields of a protocol-buffer message: numbers and bytes by field number."""
    found: dict[int, list[Any]] = {}
    place = 0
    while place < len(message):
        tag, place = varint(message, place)
        kind = tag & 7
        if kind == 0:
            value, place = varint(message, place)
        elif kind == 2:
            length, place = varint(message, place)
            value, place = message[place : place + length], place + length
        else:
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                raise CheckpointCorruptError("The index of the TensorFlow checkpoint is damaged. Copy it again.")
            value, place = message[place : place + length], place + length
        found.setdefault(tag >> 3, []).append(value)
    return found
