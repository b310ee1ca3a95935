"""Arrays in packs, and how parts of them are read: only the required chunks, in parallel, and each one is verified."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from estimator_core._packs.boxes import CHUNK_BYTES, Box, common, shape_of, slices, whole
from estimator_core._packs.dtypes import dtype_named
from estimator_core._packs.entry import USE_ANOTHER
from estimator_core._packs.index import Piece
from estimator_core._packs.packs import Packs
from estimator_core._storage.local import block
from estimator_core.errors import CheckpointCorruptError

#: The number of parallel reads, each of about one chunk.
_THREADS = 4
#: The largest gap in bytes between two chunks that are read together.
_GAP = 64 << 10

#: How far into a block of memory an array begins.
_OFF = 16
#: A function that receives the elements of a chunk.
_Taker = Callable[[np.ndarray], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Delta:
    """Changed rows of a piece.

    Args:
        place: the place of the piece.
        rows: the row numbers in the whole array, ascending.
        values: the rows themselves.
    """

    place: Box
    rows: StoredArray
    values: StoredArray


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredArray:
    """An array that is stored in packs. `numpy.asarray` reads all of it. `read_boxes` and `place` read parts.

    Args:
        packs: the packs.
        item, path, shape, dtype: the item, path, shape and dtype of the stored array.
        parts: the names of packs, each with a piece of the array in it.
        deltas: the rows that have changed since the pieces were written.
    """

    packs: Packs
    item: str
    path: str
    shape: tuple[int, ...]
    dtype: np.dtype
    parts: tuple[tuple[str, Piece], ...]
    deltas: tuple[Delta, ...] = ()

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        (array,) = read_boxes([(self, whole(self.shape))])
        return array if dtype is None else array.astype(dtype, copy=False)


@dataclass(frozen=True, kw_only=True)
class _Chunk:
    """A required chunk, and the functions that use it."""

    packs: Packs
    pack: str
    piece: Piece
    box: Box
    begin: int
    end: int
    crc32: str
    takers: list[_Taker] = field(default_factory=list[_Taker])


def read_boxes(wanted: Sequence[tuple[StoredArray, Box]]) -> list[np.ndarray]:
    """Reads a part of each array.

    It needs host memory for the result, and for about one chunk in each of four threads.

    Raises:
        CheckpointCorruptError: a chunk is not what was saved. The message names item, path and place.
        StorageError: an array cannot be read.
    """
    found = [_empty(shape_of(box), array.dtype) for array, box in wanted]
    needed: dict[tuple[int, str, int], _Chunk] = {}
    for (array, box), out in zip(wanted, found, strict=True):
        for chunk in _chunks(array):
            shared = common(chunk.box, box)
            if shared is not None:
                known = needed.setdefault((id(array.packs), chunk.pack, chunk.begin), chunk)
                known.takers.append(_taker(out, slices(shared, box), slices(shared, chunk.box)))
    _read(needed.values())
    for (array, box), out in zip(wanted, found, strict=True):
        for delta in array.deltas:
            _lay_over(delta, box, out)
    return found


def verify(arrays: Sequence[StoredArray], *, part: int = 0, parts: int = 1) -> None:
    """Reads and verifies every byte of the arrays, or one of several shares of about the same size.

    Args:
        arrays: the arrays to verify.
        part: the index of the share.
        parts: the number of shares.

    Raises:
        CheckpointCorruptError: a chunk is not what was saved. The message names item, path and place.
        StorageError: an array cannot be read.
    """
    laid_over = [one for array in arrays for delta in array.deltas for one in (delta.rows, delta.values)]
    everything = _by_place(itertools.chain.from_iterable(map(_chunks, [*arrays, *laid_over])))
    ends = list(itertools.accumulate(chunk.end - chunk.begin for chunk in everything))
    _read(chunk for chunk, end in zip(everything, ends, strict=True) if (end - 1) * parts // ends[-1] == part)


def _lay_over(delta: Delta, box: Box, out: np.ndarray) -> None:
    shared = common(delta.place, box)
    if shared is None:
        return
    rows = _whole(delta.rows)
    (top, bottom), inner = delta.place[0], slices(shared, box)[1:]
    if rows.size and not (top <= rows[0] and rows[-1] < bottom and (rows[1:] > rows[:-1]).all()):
        raise CheckpointCorruptError(
            f"The checkpoint {delta.rows.packs.where} is damaged: the changed rows at {delta.place} lie outside it or "
            f"are out of order. {USE_ANOTHER}"
        )
    first, last = (int(at) for at in np.searchsorted(rows, shared[0]))
    if first < last:
        columns = tuple((a - start, b - start) for (a, b), (start, _) in zip(shared[1:], delta.place[1:], strict=True))
        (values,) = read_boxes([(delta.values, ((first, last), *columns))])
        out[(rows[first:last] - box[0][0], *inner)] = values


def _whole(array: StoredArray) -> np.ndarray:
    (found,) = read_boxes([(array, whole(array.shape))])
    return found


def _empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns memory at an address that no CPU device adopts as its buffer, since it could not donate such memory."""
    count = math.prod(shape)
    return np.frombuffer(block(count * dtype.itemsize + _OFF), dtype, count, _OFF).reshape(shape)


def _chunks(array: StoredArray) -> Iterator[_Chunk]:
    for pack, piece in array.parts:
        for box, begin, end, crc in piece.chunks():
            yield _Chunk(packs=array.packs, pack=pack, piece=piece, box=box, begin=begin, end=end, crc32=crc)


def _taker(out: np.ndarray, target: tuple[slice, ...], source: tuple[slice, ...]) -> _Taker:
    def take(chunk: np.ndarray) -> None:
        out[target] = chunk[source]

    return take


def _by_place(chunks: Iterable[_Chunk]) -> list[_Chunk]:
    return sorted(chunks, key=lambda chunk: (chunk.pack, chunk.begin))


def _read(chunks: Iterable[_Chunk]) -> None:
    runs = _runs(_by_place(chunks))
    if len(runs) == 1:
        _read_run(runs[0])
    elif runs:
        with ThreadPoolExecutor(min(_THREADS, len(runs)), thread_name_prefix="packs") as pool:
            for _ in pool.map(_read_run, runs):
                pass


def _runs(chunks: Sequence[_Chunk]) -> list[list[_Chunk]]:
    """Groups adjacent chunks that are read at once, up to the size of a large one."""
    runs: list[list[_Chunk]] = []
    for chunk in chunks:
        if runs and _joins(runs[-1], chunk):
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    return runs


def _joins(run: Sequence[_Chunk], chunk: _Chunk) -> bool:
    first, last = run[0], run[-1]
    near = chunk.packs is last.packs and chunk.pack == last.pack and chunk.begin - last.end <= _GAP
    return near and chunk.end - first.begin <= CHUNK_BYTES


def _read_run(run: Sequence[_Chunk]) -> None:
    first, packs = run[0], run[0].packs
    (data,) = packs.storage.get_ranges(packs.prefix + first.pack, [(first.begin, run[-1].end)])
    view = memoryview(data)
    for chunk in run:
        part = view[chunk.begin - first.begin : chunk.end - first.begin]
        if f"{zlib.crc32(part):08x}" != chunk.crc32:
            raise CheckpointCorruptError(
                f"The checkpoint {packs.where} is damaged: {chunk.piece.item} {chunk.piece.path!r} at {chunk.box} in "
                f"{chunk.pack} differs from what was saved. {USE_ANOTHER}"
            )
        if chunk.takers:
            elements = _elements(part, chunk)
            for take in chunk.takers:
                take(elements)


def _elements(part: memoryview, chunk: _Chunk) -> np.ndarray:
    shape, dtype = shape_of(chunk.box), dtype_named(chunk.piece.dtype)
    stored = dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype
    return np.frombuffer(part, stored, count=math.prod(shape)).reshape(shape)
