"""The packs of a checkpoint, in a storage. A directory of this machine may lack some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from estimator_core._packs.entry import PackEntry
from estimator_core._packs.index import Piece, read_index
from estimator_core._storage.contract import Data
from estimator_core._storage.local import LocalStorage


class Ranges(Protocol):
    """Parts of objects, as `Storage.get_ranges` returns them."""

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """See `Storage.get_ranges`."""
        ...


_away: dict[Path, Ranges] = {}  # by checkpoint of a working copy, which belongs to this process


def leave_away(directory: Path, source: Ranges) -> None:
    """Records the storage of the packs that a directory lacks. The keys in the storage are the names of the packs."""
    _away[directory.absolute()] = source


def is_complete(directory: Path) -> bool:
    """Returns whether all packs are in the directory itself."""
    return directory.absolute() not in _away


def packs_of(directory: Path) -> Ranges:
    """Returns the storage from which the packs of a checkpoint are read, by name."""
    here, there = LocalStorage(directory), _away.get(directory.absolute())
    return here if there is None else _Either(directory, here, there)


class _Either:
    """The local directory, and the store for packs that are not in it."""

    def __init__(self, directory: Path, here: Ranges, there: Ranges) -> None:
        self._directory, self._here, self._there = directory, here, there

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """See `Storage.get_ranges`."""
        source = self._here if (self._directory / key).exists() else self._there
        return source.get_ranges(key, ranges)


@dataclass(frozen=True, kw_only=True)
class Packs:
    """The packs of one checkpoint.

    Args:
        storage: the storage of the packs.
        prefix: the prefix of their names: empty, or with `/` at the end.
        where: the checkpoint, for messages.
        entries: the packs in the manifest.
    """

    storage: Ranges
    prefix: str
    where: str
    entries: tuple[PackEntry, ...]

    def pieces(self) -> list[tuple[str, Piece]]:
        """Returns the name of the pack and the piece, for every piece.

        Raises:
            CheckpointCorruptError: an index is not what was written.
            StorageError: an index cannot be read.
        """
        found: list[tuple[str, Piece]] = []
        for entry in self.entries:
            (tail,) = self.storage.get_ranges(self.prefix + entry.name, [(entry.bytes - entry.index, entry.bytes)])
            where = f"{entry.name} of the checkpoint {self.where}"
            found += [(entry.name, piece) for piece in read_index(where, entry, bytes(tail))]
        return found
