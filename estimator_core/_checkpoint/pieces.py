"""The parts of arrays that a process saves: its pieces, or only the rows that have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint.host_copy import HostArray, Key
from estimator_core._checkpoint.manifest import ArrayEntry, checksum, read_manifest
from estimator_core._packs.boxes import Box, whole
from estimator_core._packs.entry import PackEntry, base_name, pack_name
from estimator_core._packs.index import Piece
from estimator_core._packs.write import HostPiece, delta_pieces, described, piece_name
from estimator_core.errors import CheckpointError


@dataclass(frozen=True)
class Pieces:
    """The parts of one array that a process saves. It holds the first copy of each.

    Attributes:
        shape: the shape of the whole array.
        parts: pairs `(place, array on one device)`. A place is `(start, stop)` along each axis.
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[Box, Any], ...]


def split_off(
    items: Mapping[str, Mapping[str, Any]], *, chief: bool
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Pieces]]]:
    """Returns the parts that this process saves: whole arrays (only the chief), and its pieces of distributed arrays.

    Returns:
        The arrays by item and name, where the name of a piece contains its place, and `Pieces` by item and path.
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
            own = Pieces(tuple(value.shape), tuple(_own_parts(value)))
            pieces[item][path] = own
            arrays[item].update({piece_name(path, place): part for place, part in own.parts})
    return arrays, pieces


def is_spread(value: Any) -> bool:
    """Returns whether parts of an array are only on devices of other processes."""
    return not getattr(value, "is_fully_addressable", True) and not value.is_fully_replicated


def entries_of(
    arrays: Mapping[str, Mapping[str, HostArray]], pieces: Mapping[str, Mapping[str, Pieces]]
) -> dict[str, dict[str, ArrayEntry]]:
    """Returns the manifest entries of the arrays of which this process holds the whole or a piece. `bytes` counts its
    own.
    """
    found: dict[str, dict[str, ArrayEntry]] = {}
    for item, named in arrays.items():
        spread = pieces.get(item, {})
        parts = {piece_name(path, place) for path, own in spread.items() for place, _ in own.parts}
        found[item] = {path: _entry(host, host.shape) for path, host in named.items() if path not in parts}
        for path, own in spread.items():
            hosts = [named[piece_name(path, place)] for place, _ in own.parts]
            if hosts:
                size = sum(host.stored.nbytes for host in hosts)
                found[item][path] = replace(_entry(hosts[0], own.shape), bytes=size)
    return found


def host_pieces(
    arrays: Mapping[str, Mapping[str, HostArray]], pieces: Mapping[str, Mapping[str, Pieces]]
) -> dict[tuple[str, str], HostPiece]:
    """Returns the pieces that this process saves, by item and name of the host copy: whole arrays, and its pieces of
    others.
    """
    found: dict[tuple[str, str], HostPiece] = {}
    for item, named in arrays.items():
        left = dict(named)
        for path, own in pieces.get(item, {}).items():
            for place, _ in own.parts:
                name = piece_name(path, place)
                host = left.pop(name).stored
                words = host.shape[len(own.shape) :]  # the words of typed random keys
                stored = (*own.shape, *words)
                found[item, name] = HostPiece(
                    item=item, path=path, shape=stored, place=(*place, *whole(words)), array=host
                )
        for path, host in left.items():
            shape = host.stored.shape
            found[item, path] = HostPiece(item=item, path=path, shape=shape, place=whole(shape), array=host.stored)
    return found


def checksums(index: Sequence[Piece]) -> dict[str, dict[str, dict[str, str]]]:
    """Returns one checksum over those of each piece, by item, path and place."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for piece in index:
        places = found.setdefault(piece.item, {}).setdefault(piece.path, {})
        places[piece_name("", piece.place)] = checksum("".join(piece.crc32).encode())
    return found


def merge_entries(
    entries: Sequence[Mapping[str, Mapping[str, ArrayEntry]]],
    sums: Sequence[Mapping[str, Mapping[str, Mapping[str, str]]]],
) -> dict[str, dict[str, ArrayEntry]]:
    """Merges the entries that the processes have written into one list of arrays.

    Args:
        entries: the `entries_of` each process, in order.
        sums: the `checksums` of each process, in order.
    """
    merged: dict[str, dict[str, ArrayEntry]] = {}
    places: dict[tuple[str, str], dict[str, str]] = {}
    for own, own_sums in zip(entries, sums, strict=True):
        for item, named in own.items():
            known = merged.setdefault(item, {})
            for path, entry in named.items():
                before = known[path].bytes if path in known else 0
                known[path] = replace(entry, bytes=before + entry.bytes)
        for item, named in own_sums.items():
            for path, of_pieces in named.items():
                places.setdefault((item, path), {}).update(of_pieces)
    for (item, path), of_pieces in places.items():
        text = "".join(f"{place}{crc}" for place, crc in sorted(of_pieces.items()))
        merged[item][path] = replace(merged[item][path], crc32=checksum(text.encode()))
    return merged


def _entry(host: HostArray, shape: tuple[int, ...]) -> ArrayEntry:
    return ArrayEntry(
        shape=tuple(shape), dtype=host.dtype, bytes=host.stored.nbytes, crc32=checksum(b""), key_impl=host.key_impl
    )


def _own_parts(value: Any) -> Iterator[tuple[Box, Any]]:
    for shard in value.addressable_shards:
        if shard.replica_id == 0:
            bounds = zip(shard.index, value.shape, strict=True)
            yield tuple(part.indices(size)[:2] for part, size in bounds), shard.data


#: A piece is written whole if more than one of this many rows has changed, because the changed rows are copied in
#: memory.
_MOST = 8


@dataclass(frozen=True, kw_only=True)
class Base:
    """The base of an incremental save.

    Args:
        checkpoint: the previous checkpoint. It is the full one, or links its packs.
        rows: the rows that have changed since the full one, by item and name of the host copy.
    """

    checkpoint: Path
    rows: Mapping[Key, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Share:
    """The part of a checkpoint that one process writes.

    Args:
        pieces: the pieces of its pack.
        entries: further arrays for the manifest, by item and name: the changed rows, and their numbers.
        unchanged: the current form of the pieces that are in the linked pack or replace rows of one there.
        linked: the packs of the full save, already in place.
    """

    pieces: list[HostPiece]
    entries: dict[str, dict[str, ArrayEntry]]
    unchanged: list[Piece]
    linked: list[PackEntry]


def share_of(work: Path, process: int, own: Mapping[Key, HostPiece], base: Base | None) -> Share:
    """Returns the part that a process writes into a checkpoint directory: all of its pieces, or only the changes.

    Raises:
        CheckpointError: the manifest of the base cannot be read, or the pack of its full save was deleted.
        OSError: the pack of the full save cannot be linked.
    """
    linked = [] if base is None else _link(work, process, base.checkpoint)
    if base is None or not linked:
        return Share(pieces=list(own.values()), entries={}, unchanged=[], linked=[])
    pieces: list[HostPiece] = []
    entries: dict[str, dict[str, ArrayEntry]] = {}
    unchanged: list[Piece] = []
    for key, piece in own.items():
        rows = base.rows.get(key)
        if rows is None or _MOST * rows.size > len(piece.array):
            pieces.append(piece)
            continue
        unchanged.append(described(piece))
        for part in delta_pieces(piece, rows):
            pieces.append(part)
            entry = ArrayEntry(shape=part.shape, dtype=part.array.dtype.name, bytes=part.array.nbytes, crc32="")
            entries.setdefault(part.item, {})[part.path] = entry
    return Share(pieces=pieces, entries=entries, unchanged=unchanged, linked=linked)


def _link(work: Path, process: int, checkpoint: Path) -> list[PackEntry]:
    """Links the pack of the full save into another checkpoint, so that either checkpoint may be deleted."""
    packs = {pack.name: pack for pack in read_manifest(checkpoint).packs}
    found = packs.get(base_name(process)) or packs.get(pack_name(process))
    if found is None:
        return []
    try:
        os.link(checkpoint / found.name, work / base_name(process))
    except FileNotFoundError as error:
        raise CheckpointError(f"{checkpoint / found.name} was deleted; the next save is a full one.") from error
    return [replace(found, name=base_name(process))]
