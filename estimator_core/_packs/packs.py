"""The packs of a checkpoint, in a storage."""

from __future__ import annotations

from dataclasses import dataclass

from estimator_core._packs.away import Ranges
from estimator_core._packs.entry import PackEntry
from estimator_core._packs.index import Piece, read_index


@dataclass(frozen=True, kw_only=True)
class Packs:
    """The packs of one checkpoint.

    Args:
        storage: where they lie.
        prefix: what comes before their names; empty, or ends with `/`.
        where: the checkpoint, for messages.
        entries: what the manifest names.
    """

    storage: Ranges
    prefix: str
    where: str
    entries: tuple[PackEntry, ...]

    def pieces(self) -> list[tuple[str, Piece]]:
        """Name of the pack and piece, for every piece.

        Raises:
            CheckpointCorruptError: an index is not what was written.
            StorageError: it cannot be read.
        """
        found: list[tuple[str, Piece]] = []
        for entry in self.entries:
            (tail,) = self.storage.get_ranges(self.prefix + entry.name, [(entry.bytes - entry.index, entry.bytes)])
            where = f"{entry.name} of the checkpoint {self.where}"
            found += [(entry.name, piece) for piece in read_index(where, entry, bytes(tail))]
        return found
