"""Writes a pack directly from host memory: whole pieces, or only their changed rows."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator_core._packs.boxes import Box, whole
from estimator_core._packs.dtypes import little_endian
from estimator_core._packs.entry import PackEntry
from estimator_core._packs.index import Piece, aligned, write_index
from estimator_core._storage.contract import Data, Storage


@dataclass(frozen=True, kw_only=True)
class HostPiece:
    """A part of an array, in host memory.

    Args:
        item, path, shape: the item, path and shape of the whole array, in stored form.
        place: the part of the array.
        array: the elements of the part, which must not change while they are written.
    """

    item: str
    path: str
    shape: tuple[int, ...]
    place: Box
    array: np.ndarray


def write_pack(storage: Storage, key: str, pieces: Sequence[HostPiece]) -> tuple[PackEntry, list[Piece]]:
    """Writes the pieces that have elements, one after another, and returns when they are durable.

    Args:
        storage: the storage to write to.
        key: the key of the pack. Its last part is a `pack_name`.
        pieces: the pieces to write.

    Returns:
        The entry of the pack for the manifest, and its pieces.

    Raises:
        StorageError: the pack could not be written.
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
    """Returns the description of a piece at the beginning of a pack."""
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


#: Suffixes of the items with the row numbers and the rows.
ROWS, VALUES = ":rows", ":values"
_PLACE = re.compile(r"\d{1,18}-\d{1,18}(,\d{1,18}-\d{1,18})*")


def piece_name(path: str, place: Box) -> str:
    """Returns the name of a piece of an array.

    Example:
        >>> piece_name("dense/kernel", ((0, 4), (8, 16)))
        'dense/kernel@0-4,8-16'
    """
    return f"{path}@{','.join(f'{start}-{stop}' for start, stop in place)}"


def parse_name(name: str) -> tuple[str, Box]:
    """Splits a name that `piece_name` returned into the path and the place.

    Raises:
        ValueError: the text is not the name of a piece.

    Example:
        >>> parse_name("dense/kernel@0-4,8-16")
        ('dense/kernel', ((0, 4), (8, 16)))
    """
    path, _, place = name.rpartition("@")
    if not _PLACE.fullmatch(place):
        raise ValueError(f"{name[:200]!r} names no piece")
    bounds = (axis.partition("-") for axis in place.split(","))
    return path, tuple((int(start), int(stop)) for start, _, stop in bounds)


def delta_pieces(piece: HostPiece, rows: np.ndarray) -> list[HostPiece]:
    """Returns the pieces to write instead of a piece of which only the given rows have changed.

    Rows count from the first row of the piece.
    """
    name, first = piece_name(piece.path, piece.place), piece.place[0][0] if piece.place else 0
    if not rows.size:
        return []
    return [
        HostPiece(item=piece.item + ending, path=name, shape=array.shape, place=whole(array.shape), array=array)
        for ending, array in ((ROWS, rows.astype(np.int64) + first), (VALUES, piece.array[rows]))
    ]
