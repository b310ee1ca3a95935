"""Tests of forged indexes: they are refused before they use memory, even if their digest fits."""

import dataclasses
import hashlib
import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuts import Cut, opened, written

from estimator_core._packs.entry import MAX_INDEX_BYTES, PackEntry
from estimator_core._packs.index import write_index
from estimator_core._packs.packs import Packs
from estimator_core.errors import CheckpointCorruptError, CheckpointError

ARRAYS = {
    "a": Cut(np.arange(12, dtype=np.float32).reshape(4, 3), ((((0, 2), (0, 3)), 0), (((2, 4), (0, 3)), 0))),
    "b": Cut(np.arange(5, dtype=np.int32), ((((0, 5),), 0),)),
}


@pytest.fixture
def packs(tmp_path: Path) -> Packs:
    return written(tmp_path / "packs", ARRAYS)


def forged(packs: Packs, body: bytes, *, footer: Callable[[list[Any]], list[Any]] = lambda fields: fields) -> Packs:
    """Returns the same packs with another index, whose digest and checksums fit."""
    first = packs.entries[0]
    file = Path(packs.storage.url, first.name)
    data = file.read_bytes()[: first.bytes - first.index]
    fields = footer([b"ECPACK01", len(data), len(body), zlib.crc32(body)])
    tail = body + struct.pack("<8sQQI4x", *fields)
    file.write_bytes(data + tail)
    entry = PackEntry(
        name=first.name, bytes=len(data) + len(tail), index=len(tail), sha256=hashlib.sha256(tail).hexdigest()
    )
    return dataclasses.replace(packs, entries=(entry,))


def lines_of(packs: Packs) -> list[Any]:
    first = packs.entries[0]
    tail = Path(packs.storage.url, first.name).read_bytes()[first.bytes - first.index :]
    return [json.loads(line) for line in tail[:-32].splitlines()]


def with_lines(change: Callable[[list[Any]], object]) -> Callable[[Packs], Packs]:
    def forge(packs: Packs) -> Packs:
        lines = lines_of(packs)
        change(lines)
        return forged(packs, b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    return forge


def setting(piece: int, **values: Any) -> Callable[[Packs], Packs]:
    return with_lines(lambda lines: lines[1 + piece].update(values))


HOSTILE: dict[str, Callable[[Packs], Packs]] = {
    "a billion pieces": with_lines(lambda lines: lines[0].update(pieces=10**9)),
    "more pieces than lines": with_lines(lambda lines: lines[0].update(pieces=9)),
    "fewer pieces than lines": with_lines(lambda lines: lines[0].update(pieces=1)),
    "another version": with_lines(lambda lines: lines[0].update(pack=2)),
    "pieces that are no number": with_lines(lambda lines: lines[0].update(pieces=True)),
    "beyond the object": setting(2, shape=[10**9], place=[[0, 10**9]]),
    "larger than any object": setting(2, shape=[2**70], place=[[0, 2**70]]),
    "overlapping in the pack": setting(1, offset=0),
    "overlapping in the array": setting(1, place=[[1, 3], [0, 3]]),
    "not all of the array": setting(1, place=[[2, 3], [0, 3]]),
    "twice": setting(1, place=[[0, 2], [0, 3]]),
    "not aligned": setting(1, offset=68),
    "outside of the array": setting(1, place=[[3, 5], [0, 3]]),
    "backwards": setting(1, place=[[4, 2], [0, 3]]),
    "negative": setting(1, place=[[-2, 0], [0, 3]]),
    "of other axes": setting(1, place=[[2, 4]]),
    "a hundred axes": setting(1, shape=[1] * 100, place=[[0, 1]] * 100),
    "without checksums": setting(1, crc32=[]),
    "with too many checksums": setting(1, crc32=["00000000"] * 3),
    "with a checksum that is none": setting(1, crc32=["zz"]),
    "another dtype": setting(1, dtype="int32"),
    "a dtype of objects": setting(1, dtype="object"),
    "an unknown path": setting(1, path="../../etc/passwd"),
    "a path that is no text": setting(1, path=7),
    "a further field": setting(1, more=1),
    "deep": lambda packs: forged(packs, b'{"pack":1,"pieces":1}\n' + b"[" * 500_000 + b"\n"),
    "one long line": lambda packs: forged(packs, b'{"pack":1,"pieces":1}\n' + b'{"a":"' + b"x" * (8 << 20) + b'"}\n'),
    "many empty lists": lambda packs: forged(packs, b"[" + b"[]," * (8 << 20) + b"[]]\n"),
    "only ends of lines": lambda packs: forged(packs, b"\n" * (8 << 20)),
    "no JSON": lambda packs: forged(packs, b"\xff\xfe\n"),
    "a longer index in the footer": lambda packs: forged(
        packs, json.dumps(lines_of(packs)[0]).encode(), footer=lambda f: [*f[:2], 1 << 60, f[3]]
    ),
    "another file": lambda packs: forged(packs, b"", footer=lambda f: [b"PK\3\4", *f[1:]]),
    "another checksum": lambda packs: forged(packs, b"", footer=lambda f: [*f[:3], 1]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_without_memory(packs: Packs, name: str) -> None:
    hostile = HOSTILE[name](packs)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointCorruptError):
            opened(hostile, ARRAYS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * hostile.entries[0].index + (4 << 20)


def test_the_same_index_is_accepted(packs: Packs) -> None:
    same = with_lines(lambda lines: None)(packs)
    assert np.array_equal(np.asarray(opened(same, ARRAYS)["a"]), ARRAYS["a"].array)


def test_a_digest_that_does_not_fit_is_refused(packs: Packs) -> None:
    first, *rest = packs.entries
    wrong = dataclasses.replace(packs, entries=(dataclasses.replace(first, sha256="0" * 64), *rest))
    with pytest.raises(CheckpointCorruptError, match=r"index of arrays-0\.pack of the checkpoint here"):
        opened(wrong, ARRAYS)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../arrays-0.pack"},
        {"name": "arrays-0.pack/../../x"},
        {"name": "arrays-00.pack"},
        {"name": "/etc/passwd"},
        {"bytes": -1},
        {"bytes": 10.0},
        {"index": 0},
        {"index": 10**6},
        {"index": MAX_INDEX_BYTES + 1, "bytes": 1 << 40},
        {"sha256": None},
    ],
    ids=str,
)
def test_a_manifest_that_names_no_pack_is_refused(changes: dict[str, Any]) -> None:
    entry = {"name": "arrays-0.pack", "bytes": 1000, "index": 300, "sha256": "0" * 64}
    assert PackEntry.from_json(entry).to_json() == entry
    with pytest.raises(ValueError, match=r"pack|index"):
        PackEntry.from_json({**entry, **changes})


def test_a_writer_refuses_what_readers_would(packs: Packs, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [piece for _, piece in packs.pieces()]
    monkeypatch.setattr("estimator_core._packs.index.MAX_PIECES", 2)
    with pytest.raises(CheckpointError, match="3 pieces of arrays"):
        write_index(pieces)
