"""The arrays that the packs of a checkpoint contain. Only the indexes are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from estimator_core._packs.boxes import Box, shape_of, tile
from estimator_core._packs.dtypes import dtype_named
from estimator_core._packs.entry import is_base
from estimator_core._packs.fetch import Delta, StoredArray
from estimator_core._packs.index import Piece
from estimator_core._packs.packs import Packs
from estimator_core._packs.write import ROWS, VALUES, parse_name
from estimator_core.errors import CheckpointCorruptError

#: item -> path -> shape and name of the dtype, as stored.
Expected = Mapping[str, Mapping[str, tuple[tuple[int, ...], str]]]


def stored_arrays(packs: Packs, expected: Expected) -> dict[str, dict[str, StoredArray]]:
    """Returns the arrays of the manifest, by item and path. Only the indexes are read.

    Raises:
        CheckpointCorruptError: the packs do not contain each element exactly once.
        StorageError: an index cannot be read.
    """
    parts: dict[tuple[str, str], list[tuple[str, Piece]]] = {}
    own: set[tuple[str, str, Box]] = set()
    for name, piece in sorted(packs.pieces(), key=lambda found: is_base(found[0])):
        fits = expected.get(piece.item, {}).get(piece.path) == (piece.shape, piece.dtype)
        if is_base(name):  # its pieces are used only if there are no newer ones
            if not fits or (piece.item, piece.path, piece.place) in own:
                continue
        elif not fits:
            raise _damaged(packs, f"{name} holds {piece.item} {piece.path!r}, but the manifest describes it otherwise")
        else:
            own.add((piece.item, piece.path, piece.place))
        parts.setdefault((piece.item, piece.path), []).append((name, piece))
    found = {
        item: {path: _stored(packs, item, path, *what, parts.get((item, path), ())) for path, what in named.items()}
        for item, named in expected.items()
    }
    for item in [item for item in found if item + ROWS in found]:
        for path, deltas in _deltas(packs, item, found).items():
            found[item][path] = replace(found[item][path], deltas=tuple(deltas))
    return found


def _deltas(packs: Packs, item: str, found: Mapping[str, Mapping[str, StoredArray]]) -> dict[str, list[Delta]]:
    deltas: dict[str, list[Delta]] = {}
    for name, rows in found[item + ROWS].items():
        try:
            path, place = parse_name(name)
            array, values = found[item][path], found[item + VALUES][name]
        except (ValueError, KeyError):
            raise _damaged(packs, f"{name!r} does not belong to any array of the checkpoint") from None
        places = [piece.place for pack, piece in array.parts if is_base(pack)]
        if place not in places or values.dtype != array.dtype or rows.dtype != np.int64:
            raise _damaged(packs, f"{name!r} does not belong to any array of the checkpoint")
        if values.shape != (*rows.shape, *shape_of(place)[1:]):
            raise _damaged(packs, f"{name!r} has rows of the wrong shape")
        deltas.setdefault(path, []).append(Delta(place=place, rows=rows, values=values))
    return deltas


def _stored(
    packs: Packs, item: str, path: str, shape: tuple[int, ...], dtype: str, parts: Sequence[tuple[str, Piece]]
) -> StoredArray:
    boxes: list[Box] = [piece.place for _, piece in parts]
    if not (tile(shape, boxes) if math.prod(shape) else not boxes):
        raise _damaged(packs, f"the pieces of {item} {path!r} do not cover the array exactly once")
    return StoredArray(packs=packs, item=item, path=path, shape=shape, dtype=dtype_named(dtype), parts=tuple(parts))


def _damaged(packs: Packs, what: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(f"The checkpoint {packs.where} is damaged: {what}.")
