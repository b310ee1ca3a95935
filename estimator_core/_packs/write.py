"""Writing a pack: straight from host memory, without a copy of it."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator_core._packs.boxes import Box
from estimator_core._packs.dtypes import little_endian
from estimator_core._packs.entry import PackEntry
from estimator_core._packs.index import Piece, aligned, write_index
from estimator_core._storage import Data, Storage


@dataclass(frozen=True, kw_only=True)
class HostPiece:
    """A part of an array, in host memory.

    Args:
        item, path, shape: of the whole array, as it is stored.
        place: which part of it this is.
        array: its elements; nobody changes them while they are written.
    """

    item: str
    path: str
    shape: tuple[int, ...]
    place: Box
    array: np.ndarray


def write_pack(storage: Storage, key: str, pieces: Sequence[HostPiece]) -> tuple[PackEntry, list[Piece]]:
    """Writes the pieces that have elements, one after another; returns when they are durable.

    Args:
        storage: where to.
        key: of the pack; its last part is a `pack_name`.
        pieces: what it is to hold.

    Returns:
        What the manifest says of the pack, and its pieces.

    Raises:
        StorageError: it could not be written.
        CheckpointError: there are more pieces than a pack may have.
    """
    full = [(piece, _bytes_of(piece.array)) for piece in pieces if piece.array.size]
    index: list[Piece] = []
    for piece, data in full:
        index.append(_described(piece, data, offset=index[-1].end if index else 0))
    tail = write_index(index)
    begin = index[-1].end if index else 0
    entry = PackEntry(
        name=key.rpartition("/")[2],
        bytes=begin + len(tail),
        index=len(tail),
        sha256=hashlib.sha256(tail).hexdigest(),
    )

    def stream() -> Iterator[Data]:
        for piece, (_, data) in zip(index, full, strict=True):
            for _, start, stop, _ in piece.chunks():
                yield data[start - piece.offset : stop - piece.offset]
            yield bytes(piece.end - piece.offset - len(data))
        yield tail

    storage.put_stream(key, stream(), size=entry.bytes)
    return entry, index


def described(piece: HostPiece) -> Piece:
    """A piece as a pack that begins with it would hold it."""
    return _described(piece, _bytes_of(piece.array), offset=0)


def _described(piece: HostPiece, data: memoryview, *, offset: int) -> Piece:
    chunked = Piece(
        item=piece.item,
        path=piece.path,
        dtype=piece.array.dtype.name,
        shape=piece.shape,
        place=piece.place,
        offset=offset,
        crc32=(),
    )
    zeros = bytes(aligned(len(data)) - len(data))
    crcs = [zlib.crc32(data[start - offset : stop - offset]) for start, stop in chunked.extents()]
    crcs[-1] = zlib.crc32(zeros, crcs[-1])
    return replace(chunked, crc32=tuple(f"{crc:08x}" for crc in crcs))


def _bytes_of(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(little_endian(array)).reshape(-1).view(np.uint8).data
