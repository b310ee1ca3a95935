"""The index of a pack: the place and checksums of each piece. Reading it enforces strict bounds."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from estimator_core._packs.boxes import Box, chunks, shape_of
from estimator_core._packs.dtypes import dtype_named
from estimator_core._packs.entry import FOOTER_BYTES, MAX_INDEX_BYTES, PackEntry, is_size
from estimator_core.errors import CheckpointCorruptError, CheckpointError

#: Pieces begin at multiples of this many bytes.
ALIGNMENT = 64
#: The version of the layout of a pack.
PACK_FORMAT = 1
#: Limits for pieces, line length, axes and names. Larger values are refused before they use memory.
MAX_PIECES, MAX_LINE, MAX_AXES, MAX_NAME = 1 << 18, 1 << 20, 32, 4096
_FOOTER = struct.Struct("<8sQQI4x")
_MAGIC = b"ECPACK01"
_CRC = re.compile(r"[0-9a-f]{8}")
_KEYS = {"item", "path", "dtype", "shape", "place", "offset", "crc32"}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of an array in a pack.

    Args:
        item, path: the item and the path of the array.
        dtype: the name of the stored dtype.
        shape: the shape of the whole array.
        place: the part of the array.
        offset: the offset of the first byte in the pack.
        crc32: the checksum of each of the `chunks`, in eight hexadecimal digits. The last one covers the zeros up to
            the next piece.
    """

    item: str
    path: str
    dtype: str
    shape: tuple[int, ...]
    place: Box
    offset: int
    crc32: tuple[str, ...]

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""
        return dtype_named(self.dtype).itemsize

    @property
    def bytes(self) -> int:
        """The number of bytes of the elements."""
        return math.prod(shape_of(self.place)) * self.itemsize

    @property
    def end(self) -> int:
        """The offset of the next piece."""
        return aligned(self.offset + self.bytes)

    def chunks(self) -> Iterator[tuple[Box, int, int, str]]:
        """Yields the box in the whole array, first byte, byte after the last with the zeros, and checksum of each
        chunk.
        """
        boxes = chunks(shape_of(self.place), self.itemsize)
        last = len(self.crc32) - 1
        for number, (inner, (begin, end), crc) in enumerate(zip(boxes, self.extents(), self.crc32, strict=True)):
            box = tuple((a + start, b + start) for (a, b), (start, _) in zip(inner, self.place, strict=True))
            yield box, begin, self.end if number == last else end, crc

    def extents(self) -> Iterator[tuple[int, int]]:
        """Yields the first byte of each chunk, and the byte after the last of its elements."""
        at, itemsize = self.offset, self.itemsize
        for inner in chunks(shape_of(self.place), itemsize):
            begin, at = at, at + math.prod(shape_of(inner)) * itemsize
            yield begin, at


def aligned(offset: int) -> int:
    """Returns the next offset at which a piece may begin."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def write_index(pieces: Sequence[Piece]) -> bytes:
    """Returns the index and footer of a pack with these pieces.

    Raises:
        CheckpointError: the index is larger than readers accept.
    """
    lines = [json.dumps({"pack": PACK_FORMAT, "pieces": len(pieces)})]
    for piece in pieces:
        fields = {"item": piece.item, "path": piece.path, "dtype": piece.dtype, "shape": piece.shape}
        place = {"place": piece.place, "offset": piece.offset, "crc32": piece.crc32}
        lines.append(json.dumps({**fields, **place}, separators=(",", ":")))
    body = "".join(f"{line}\n" for line in lines).encode()
    end = pieces[-1].end if pieces else 0
    if len(body) > MAX_INDEX_BYTES - FOOTER_BYTES or len(pieces) > MAX_PIECES or max(map(len, lines)) >= MAX_LINE:
        raise CheckpointError(
            f"This process holds {len(pieces):,} pieces of arrays, whose index takes {len(body):,} bytes. A pack has "
            f"at most {MAX_PIECES:,} pieces and {MAX_INDEX_BYTES:,} bytes of index: join small variables, or use "
            "more processes."
        )
    return body + _FOOTER.pack(_MAGIC, end, len(body), zlib.crc32(body))


def read_index(where: str, entry: PackEntry, tail: bytes) -> list[Piece]:
    """Reads the pieces of a pack from its last bytes.

    Args:
        where: the pack, for messages.
        entry: the entry of the pack in the manifest.
        tail: the bytes of index and footer.

    Raises:
        CheckpointCorruptError: the index or the footer was altered or is invalid.
    """
    try:
        if hashlib.sha256(tail).hexdigest() != entry.sha256:
            raise ValueError("its digest differs")
        return list(_pieces(entry, tail))
    except (ValueError, KeyError, TypeError, RecursionError, CheckpointError) as error:
        raise CheckpointCorruptError(f"The index of {where} cannot be trusted ({str(error)[:300]}).") from error


def _pieces(entry: PackEntry, tail: bytes) -> Iterator[Piece]:
    magic, begin, length, crc = _FOOTER.unpack(tail[-FOOTER_BYTES:])
    body = tail[:-FOOTER_BYTES]
    if magic != _MAGIC or len(tail) != entry.index or begin != entry.bytes - len(tail) or length != len(body):
        raise ValueError("its footer is wrong")
    if zlib.crc32(body) != crc:
        raise ValueError("its checksum does not match")
    lines = io.BytesIO(body)
    head = _line(lines)
    if head.keys() != {"pack", "pieces"} or head["pack"] != PACK_FORMAT:
        raise ValueError("its first line has another format")
    if not is_size(head["pieces"]) or head["pieces"] > MAX_PIECES:
        raise ValueError(f"it has {str(head['pieces'])[:40]} pieces; at most {MAX_PIECES} are accepted")
    at = 0
    for _ in range(head["pieces"]):
        piece = _piece(_line(lines))
        if piece.offset != at or piece.end > begin:
            raise ValueError(f"{piece.item} {piece.path!r} is in the wrong place")
        counted = sum(1 for _ in itertools.islice(chunks(shape_of(piece.place), piece.itemsize), len(piece.crc32) + 1))
        if counted != len(piece.crc32):
            raise ValueError(f"{piece.item} {piece.path!r} has the wrong number of checksums ({len(piece.crc32)})")
        at = piece.end
        yield piece
    if at != begin or lines.read(1):
        raise ValueError("it does not end with its last piece")


def _line(lines: io.BytesIO) -> dict[str, Any]:
    line = lines.readline(MAX_LINE)
    if not line.endswith(b"\n"):
        raise ValueError("a line is too long or missing")
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("a line is not an object")
    return value


def _piece(entry: dict[str, Any]) -> Piece:
    if entry.keys() != _KEYS:
        raise ValueError(f"a piece has unexpected fields: {sorted(entry)[:10]}")
    item, path, dtype, shape, place = (entry[name] for name in ("item", "path", "dtype", "shape", "place"))
    if not all(isinstance(text, str) and len(text) <= MAX_NAME for text in (item, path, dtype)):
        raise ValueError("a name is not a string, or is too long")
    if not (isinstance(shape, list) and isinstance(place, list) and len(shape) == len(place) <= MAX_AXES):
        raise ValueError(f"{item} {path!r} has an impossible shape")
    for size, bounds in zip(shape, place, strict=True):
        if not (is_size(size) and isinstance(bounds, list) and len(bounds) == 2 and all(map(is_size, bounds))):
            raise ValueError(f"{item} {path!r} has an impossible shape")
        if not bounds[0] < bounds[1] <= size:
            raise ValueError(f"{item} {path!r} has a place outside its shape")
    crcs = entry["crc32"]
    if not (is_size(entry["offset"]) and isinstance(crcs, list)):
        raise ValueError(f"{item} {path!r} has no offset or no checksums")
    if not all(isinstance(crc, str) and _CRC.fullmatch(crc) for crc in crcs):
        raise ValueError(f"{item} {path!r} has an invalid checksum")
    return Piece(
        item=item,
        path=path,
        dtype=dtype_named(dtype).name,
        shape=tuple(shape),
        place=tuple((start, stop) for start, stop in place),
        offset=entry["offset"],
        crc32=tuple(crcs),
    )
