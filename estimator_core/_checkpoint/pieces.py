"""The parts of arrays that a process saves: its pieces, or only the rows that have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint.host_copy import HostArray, Key
from estimator_core._checkpoint.manifest import FORMAT, ArrayEntry, Manifest, Part, checksum, read_manifest
from estimator_core._packs.boxes import Box, whole
from estimator_core._packs.entry import PackEntry, base_name, pack_name
from estimator_core._packs.index import Piece
from estimator_core._packs.write import HostPiece, delta_pieces, described, piece_name, write_pack
from estimator_core._storage.contract import StorageError
from estimator_core._storage.local import LocalStorage
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
    """Returns the manifest entries of the arrays of which this process holds the whole or a piece.

    `bytes` counts its own.
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


def manifest_of(manifest: Manifest, parts: Sequence[Part]) -> Manifest:
    """Completes the manifest of a checkpoint with the parts that the processes have written, in order."""
    merged: dict[str, dict[str, ArrayEntry]] = {}
    places: dict[tuple[str, str], dict[str, str]] = {}
    for part in parts:
        for item, named in part.arrays.items():
            known = merged.setdefault(item, {})
            for path, entry in named.items():
                before = known[path].bytes if path in known else 0
                known[path] = replace(entry, bytes=before + entry.bytes)
        for item, sums in part.checksums.items():
            for path, of_pieces in sums.items():
                places.setdefault((item, path), {}).update(of_pieces)
    for (item, path), of_pieces in places.items():
        text = "".join(f"{place}{crc}" for place, crc in sorted(of_pieces.items()))
        merged[item][path] = replace(merged[item][path], crc32=checksum(text.encode()))
    packs = tuple(pack for part in parts for pack in part.packs)
    return replace(manifest, arrays=merged, packs=packs, format=FORMAT)


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
_ONE_IN = 8


@dataclass(frozen=True, kw_only=True)
class Base:
    """The base of an incremental save.

    Args:
        checkpoint: the previous checkpoint. It is the full one, or links its packs.
        rows: the rows that have changed since the full one, by item and name of the host copy.
    """

    checkpoint: Path
    rows: Mapping[Key, np.ndarray]


def write_part(
    work: Path,
    process: int,
    arrays: Mapping[str, Mapping[str, HostArray]],
    pieces: Mapping[str, Mapping[str, Pieces]],
    base: Base | None,
) -> Part:
    """Writes the pack of a process into a checkpoint directory: all of its pieces, or only the changes.

    Args:
        work: the directory.
        process: the index of this process.
        arrays: its host arrays, by item and name.
        pieces: the arrays of which it holds pieces.
        base: the base of an incremental save. None: everything is written.

    Raises:
        CheckpointError: the manifest of the base cannot be read, or the pack of its full save was deleted.
        OSError: the pack cannot be written, or that of the full save cannot be linked.
        StorageGoneError: the directory was removed.
    """
    packs = [] if base is None else _link(work, process, base.checkpoint)
    changed = base.rows if base is not None and packs else {}
    entries = entries_of(arrays, pieces)
    written: list[HostPiece] = []
    index: list[Piece] = []  # the current form of the pieces that are in the linked pack or replace rows of one there
    for key, piece in host_pieces(arrays, pieces).items():
        rows = changed.get(key)
        if rows is None or _ONE_IN * rows.size > len(piece.array):
            written.append(piece)
            continue
        index.append(described(piece))
        for part in delta_pieces(piece, rows):
            written.append(part)
            entry = ArrayEntry(shape=part.shape, dtype=part.array.dtype.name, bytes=part.array.nbytes, crc32="")
            entries.setdefault(part.item, {})[part.path] = entry
    if any(piece.array.size for piece in written):
        try:
            pack, of_pack = write_pack(LocalStorage(work), pack_name(process), written)
        except StorageError as error:
            if isinstance(error.__cause__, OSError):  # as of any other file of a checkpoint, so that it may pass
                raise error.__cause__ from None
            raise
        packs, index = [pack, *packs], [*of_pack, *index]
    return Part(arrays=entries, packs=packs, checksums=checksums(index))


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
