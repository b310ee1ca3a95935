"""Packs that a directory of this machine lacks: they stay in a store, and parts of them are read there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from estimator_core._storage import Data
from estimator_core._storage.local import LocalStorage


class Ranges(Protocol):
    """Parts of objects, as `Storage.get_ranges` returns them."""

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """See `Storage.get_ranges`."""
        ...


_away: dict[Path, Ranges] = {}  # by checkpoint of a working copy, which belongs to this process


def leave_away(directory: Path, source: Ranges) -> None:
    """Notes where the packs are that a directory lacks; the keys there are their names."""
    _away[directory.absolute()] = source


def is_complete(directory: Path) -> bool:
    """Whether all packs are in the directory itself."""
    return directory.absolute() not in _away


def packs_of(directory: Path) -> Ranges:
    """Where the packs of a checkpoint are read, by name."""
    here, there = LocalStorage(directory), _away.get(directory.absolute())
    return here if there is None else _Either(directory, here, there)


class _Either:
    """This machine, and the store for what is not here."""

    def __init__(self, directory: Path, here: Ranges, there: Ranges) -> None:
        self._directory, self._here, self._there = directory, here, there

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
        """See `Storage.get_ranges`."""
        source = self._here if (self._directory / key).exists() else self._there
        return source.get_ranges(key, ranges)
