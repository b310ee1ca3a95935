"""Arrays spread over the devices of several processes: each process saves the pieces it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimator_core._checkpoint.manifest import ArrayEntry, PieceEntry

#: Between a path and the place of a piece, in the names of stored arrays; paths of variables cannot contain it.
_MARK = "@"


@dataclass(frozen=True)
class Pieces:
    """The parts of one array that a process is to save: it holds the first copy of each.

    Attributes:
        shape, dtype: of the whole array.
        parts: `(place, array on one device)`; a place is `(start, stop)` along each axis.
    """

    shape: tuple[int, ...]
    dtype: Any
    parts: tuple[tuple[tuple[tuple[int, int], ...], Any], ...]


def split_off(
    items: Mapping[str, Mapping[str, Any]], *, chief: bool
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """What this process has to save: whole arrays (the chief alone), and its pieces of those that are spread.

    Returns:
        item -> name -> array, where the name of a piece tells its place; and item -> path -> `Pieces`.
    """
    arrays: dict[str, dict[str, Any]] = {}
    pieces: dict[str, dict[str, Pieces]] = {}
    for item, named in items.items():
        arrays[item], pieces[item] = {}, {}
        for path, value in named.items():
            if not is_spread(value):
                if chief:
                    arrays[item][path] = value
                continue
            own = Pieces(tuple(value.shape), value.dtype, tuple(_own_parts(value)))
            pieces[item][path] = own
            arrays[item].update({piece_name(path, place): part for place, part in own.parts})
    return arrays, pieces


def is_spread(value: Any) -> bool:
    """Whether parts of an array are on devices of other processes only."""
    return not getattr(value, "is_fully_addressable", True) and not value.is_fully_replicated


def piece_name(path: str, place: tuple[tuple[int, int], ...]) -> str:
    """The name a piece is stored under.

    Example:
        >>> piece_name("dense/kernel", ((0, 4), (8, 16)))
        'dense/kernel@0-4,8-16'
    """
    return f"{path}{_MARK}{','.join(f'{start}-{stop}' for start, stop in place)}"


def merge_entries(
    parts: Sequence[Mapping[str, Mapping[str, ArrayEntry]]], shapes: Mapping[str, Mapping[str, tuple[list[int], str]]]
) -> dict[str, dict[str, ArrayEntry]]:
    """One manifest out of what each process has written.

    Args:
        parts: process by process, item -> name -> entry.
        shapes: item -> path -> shape and dtype of arrays saved in pieces.
    """
    merged: dict[str, dict[str, ArrayEntry]] = {}
    for process, written in enumerate(parts):
        for item, named in written.items():
            entries = merged.setdefault(item, {})
            for name, entry in named.items():
                path, mark, place = name.rpartition(_MARK)
                if not mark:
                    entries[name] = entry
                    continue
                shape, dtype = shapes[item][path]
                piece = PieceEntry(process=process, place=_place_of(place), bytes=entry.bytes, crc32=entry.crc32)
                whole = entries.get(path) or ArrayEntry(shape=tuple(shape), dtype=dtype, bytes=0, crc32="")
                entries[path] = replace(whole, bytes=whole.bytes + entry.bytes, pieces=(*whole.pieces, piece))
    return merged


def assembled(entry: ArrayEntry, dtype: np.dtype, read: Mapping[str, np.ndarray], path: str) -> np.ndarray:
    """A whole array, from its pieces."""
    whole = np.empty(entry.shape, dtype)
    for piece in entry.pieces:
        whole[tuple(slice(start, stop) for start, stop in piece.place)] = read[piece_name(path, piece.place)]
    return whole


def covered(entry: ArrayEntry) -> bool:
    """Whether the pieces are as many elements as the array."""
    sizes = (int(np.prod([stop - start for start, stop in piece.place], dtype=np.int64)) for piece in entry.pieces)
    return sum(sizes) == int(np.prod(entry.shape, dtype=np.int64))


def _own_parts(value: Any) -> Iterator[tuple[tuple[tuple[int, int], ...], Any]]:
    for shard in value.addressable_shards:
        if shard.replica_id == 0:
            bounds = zip(shard.index, value.shape, strict=True)
            yield tuple(part.indices(size)[:2] for part, size in bounds), shard.data


def _place_of(text: str) -> tuple[tuple[int, int], ...]:
    bounds = (axis.partition("-") for axis in text.split(",")) if text else ()
    return tuple((int(start), int(stop)) for start, _, stop in bounds)
