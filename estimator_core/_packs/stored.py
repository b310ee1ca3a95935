"""Arrays in packs, read when somebody asks for a part of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from estimator_core._packs.boxes import Box, tile, whole
from estimator_core._packs.dtypes import dtype_named
from estimator_core._packs.fetch import read_boxes
from estimator_core._packs.index import Piece
from estimator_core._packs.packs import Packs
from estimator_core.errors import CheckpointCorruptError


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredArray:
    """An array that lies in packs. `numpy.asarray` reads all of it; `read_boxes` and `place` read parts.

    Args:
        packs: where.
        item, path, shape, dtype: of the array, as it is stored.
        parts: names of packs, and the pieces of the array in them.
    """

    packs: Packs
    item: str
    path: str
    shape: tuple[int, ...]
    dtype: np.dtype
    parts: tuple[tuple[str, Piece], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        (array,) = read_boxes([(self, whole(self.shape))])
        return array if dtype is None else array.astype(dtype, copy=False)


#: item -> path -> shape and name of the dtype, as stored.
Expected = Mapping[str, Mapping[str, tuple[tuple[int, ...], str]]]


def stored_arrays(packs: Packs, expected: Expected) -> dict[str, dict[str, StoredArray]]:
    """The arrays that the manifest tells of, by item and path; nothing but the indexes is read.

    Raises:
        CheckpointCorruptError: the packs do not hold each of their elements once.
        StorageError: an index cannot be read.
    """
    parts: dict[tuple[str, str], list[tuple[str, Piece]]] = {}
    for name, piece in packs.pieces():
        if expected.get(piece.item, {}).get(piece.path) != (piece.shape, piece.dtype):
            raise _damaged(packs, f"{name} holds {piece.item} {piece.path!r}, of which the manifest tells otherwise")
        parts.setdefault((piece.item, piece.path), []).append((name, piece))
    return {
        item: {path: _stored(packs, item, path, *what, parts.get((item, path), ())) for path, what in named.items()}
        for item, named in expected.items()
    }


def _stored(
    packs: Packs, item: str, path: str, shape: tuple[int, ...], dtype: str, parts: Sequence[tuple[str, Piece]]
) -> StoredArray:
    boxes: list[Box] = [piece.place for _, piece in parts]
    if not (tile(shape, boxes) if math.prod(shape) else not boxes):
        raise _damaged(packs, f"the pieces of {item} {path!r} do not cover it once")
    return StoredArray(packs=packs, item=item, path=path, shape=shape, dtype=dtype_named(dtype), parts=tuple(parts))


def _damaged(packs: Packs, what: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(f"The checkpoint {packs.where} is damaged: {what}.")
