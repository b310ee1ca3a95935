"""Saves that write only the rows that have changed since a full one, whose packs they link."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from estimator_core._checkpoint.host_copy import Key
from estimator_core._checkpoint.manifest import ArrayEntry, read_manifest
from estimator_core._packs.deltas import delta_pieces
from estimator_core._packs.entry import PackEntry, base_name, pack_name
from estimator_core._packs.index import Piece
from estimator_core._packs.write import HostPiece, described
from estimator_core.errors import CheckpointError

#: A piece is written whole where more than one of so many rows has changed: the changed ones are copied in memory.
_MOST = 8


@dataclass(frozen=True, kw_only=True)
class Base:
    """What a save that is not a full one goes out from.

    Args:
        checkpoint: the previous one; it is the full one, or links its packs.
        rows: which rows have changed since the full one, by item and name of the host copy.
    """

    checkpoint: Path
    rows: Mapping[Key, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one process writes.

    Args:
        pieces: of its pack.
        entries: further arrays for the manifest, by item and name: rows, and their numbers.
        unchanged: the pieces that are in the linked pack or laid over one there, as they are now.
        linked: packs of the full save, already in place.
    """

    pieces: list[HostPiece]
    entries: dict[str, dict[str, ArrayEntry]]
    unchanged: list[Piece]
    linked: list[PackEntry]


def share_of(work: Path, process: int, own: Mapping[Key, HostPiece], base: Base | None) -> Share:
    """What a process writes into a checkpoint directory: all of its pieces, or what has changed.

    Raises:
        CheckpointError: the checkpoint before cannot be read.
        OSError: its pack cannot be linked.
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
    """Gives the pack of the full save a name in another checkpoint too: either may be deleted."""
    packs = {pack.name: pack for pack in read_manifest(checkpoint).packs}
    found = packs.get(base_name(process)) or packs.get(pack_name(process))
    if found is None:
        return []
    try:
        os.link(checkpoint / found.name, work / base_name(process))
    except FileNotFoundError as error:
        raise CheckpointError(f"{checkpoint / found.name} was deleted; the next save is a full one.") from error
    return [replace(found, name=base_name(process))]
