"""Checkpoints of TensorFlow (`bert_model.ckpt.index` and its data), read without TensorFlow."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_bert.weights.sstable import read_table, varint
from estimator_core.errors import ArgumentError, CheckpointCorruptError

# Numbers of tensorflow.DataType.
_DTYPES = {1: "float32", 2: "float64", 3: "int32", 9: "int64", 14: "bfloat16", 19: "float16", 22: "uint32"}
# Slots of an optimizer, and counters.
_NOT_WEIGHTS = re.compile(
    r".*/(adam_[mv]|Adam(_1)?|lamb_[mv]|AdamWeightDecayOptimizer.*)|global_step|_CHECKPOINTABLE.*"
)


@dataclass(frozen=True, kw_only=True)
class _Entry:
    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    sliced: bool


def tensorflow_prefix(path: str | os.PathLike[str]) -> Path | None:
    """The prefix of the checkpoint's files that a path names, or None.

    Args:
        path: a prefix (`.../bert_model.ckpt`), its index file, or a directory: the newest checkpoint that its file
            `checkpoint` names, or the only one there is.

    Raises:
        ArgumentError: a directory with several checkpoints and no file `checkpoint`.
    """
    place = Path(path)
    if place.suffix == ".index" and place.is_file():
        return place.with_suffix("")
    if place.parent.is_dir() and Path(f"{place}.index").is_file():
        return place
    if not place.is_dir():
        return None
    named = place / "checkpoint"
    if named.is_file():
        found = re.search(r'^model_checkpoint_path: "(.*)"', named.read_text(encoding="utf-8"), re.MULTILINE)
        if found and Path(f"{place / found.group(1)}.index").is_file():
            return place / found.group(1)
    indices = sorted(place.glob("*.index"))
    if len(indices) > 1:
        raise ArgumentError(f"{place} holds several checkpoints: {', '.join(p.stem for p in indices)}. Name one.")
    return indices[0].with_suffix("") if indices else None


def read_tensorflow(prefix: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The weights of a checkpoint, by name; slots of the optimizer are left out.

    Args:
        prefix: as `tensorflow_prefix` gives it.

    Raises:
        ArgumentError: a data file is missing.
        CheckpointCorruptError: a file is damaged or only half there.

    Source: tensorflow/core/protobuf/tensor_bundle.proto.
    """
    index = Path(f"{prefix}.index")
    table = read_table(index.read_bytes(), str(index))
    shards = _fields(table.get(b"", b"")).get(1, [1])[0]
    data: dict[int, np.ndarray] = {}
    found: dict[str, np.ndarray] = {}
    for key, value in table.items():
        name = key.decode("utf-8", "replace")
        if not key or _NOT_WEIGHTS.fullmatch(name):
            continue
        entry = _entry(value)
        if entry.shard not in data:
            data[entry.shard] = _open(Path(f"{prefix}.data-{entry.shard:05d}-of-{shards:05d}"))
        found[name] = _array(name, entry, data[entry.shard], prefix)
    return found


def _open(path: Path) -> np.ndarray:
    if not path.is_file():
        raise ArgumentError(f"The checkpoint lacks its file {path}. Download it too.")
    return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)


def _array(name: str, entry: _Entry, data: np.ndarray, prefix: object) -> np.ndarray:
    if entry.sliced or entry.dtype not in _DTYPES:
        raise CheckpointCorruptError(
            f"{name!r} in {prefix} is stored in a way that cannot be read (type {entry.dtype})."
        )
    stored = data[entry.offset : entry.offset + entry.size]
    dtype = _dtype(_DTYPES[entry.dtype])
    if len(stored) < entry.size or entry.size != dtype.itemsize * int(np.prod(entry.shape, dtype=np.int64)):
        raise CheckpointCorruptError(
            f"The data of {name!r} in {prefix} should be {entry.size} bytes at {entry.offset}, but the file has "
            f"{len(data)}: it is only a part of one. Download it again."
        )
    return np.frombuffer(stored.tobytes(), dtype).reshape(entry.shape)


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
        sliced=7 in fields,
    )


def _fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a protocol-buffer message: numbers and bytes by field number."""
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
