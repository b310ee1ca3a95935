"""Copies event files, results and exports between a working copy and the store, and knows which the store has."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

from estimator_core.journal import (
    Entry,
    Evaluated,
    Lineage,
    Segment,
    lineage_of,
    results_in,
    write_results_files,
)
from estimator_core.storage import ObjectMissingError, Storage
from estimator_storage.at_urls.directories import download_file, upload_file
from estimator_storage.at_urls.kept_exports import KeptExports
from estimator_storage.at_urls.side_files import RESERVED, export_of, is_event_file, of_this_run, side_files

_EPOCH = re.compile(r"(events\.out\.tfevents\.\d{10}\.e)\d{6}$")


class Beside:
    """Copies these files from and to the store, whose journal counts complete bytes. Readers ignore all others.

    In the store, the key of an event file contains the epoch of the store's journal. The key of an observer, which has
    no epoch, ends in random digits. Two processes therefore never write the same key.

    Args:
        storage: the storage of the model_dir.
        path: the path of the working copy.

    Attributes:
        exports: the exports of the copy.
    """

    def __init__(self, storage: Storage, path: Path) -> None:
        self._storage, self._path = storage, path
        self._sent: dict[str, tuple[int, int]] = {}
        self._keys: dict[str, str] = {}  # the keys in the store of the event files written here
        self._due: dict[str, int] = {}  # recorded event files that are not in the store yet
        self.exports = KeptExports(storage, path)
        self._brought: dict[tuple[str, int], Evaluated] = {}

    def bring(self, lineage: Lineage) -> None:
        """Downloads the files to the copy. New event files get later numbers."""
        counted = _counted(lineage)
        for entry in of_this_run(self._storage):
            key = entry.key
            if _is_other(key) or (is_event_file(key) and key not in counted) or (self._path / key).exists():
                continue
            download_file(self._storage, entry, self._path / key)
            if key in counted:
                os.truncate(self._path / key, counted[key])
                self._keys[key] = key
            self._sent[key] = _stamp(self._path / key)
        self.exports.bring(lineage)
        self._derive(lineage)

    def renew(self, name: str) -> None:
        """Downloads a file that another process may have replaced."""
        with contextlib.suppress(ObjectMissingError):
            (self._path / name).write_bytes(self._storage.get(name))
            self._sent[name] = _stamp(self._path / name)

    def trim(self, lineage: Lineage) -> None:
        """Removes what the journal no longer counts from the copy and the store, when a run continues from a step."""
        counted = _counted(lineage)
        for entry in of_this_run(self._storage):
            if not is_event_file(entry.key) or _is_other(entry.key):
                continue
            size = counted.get(entry.key, 0)
            if size == 0:
                self._storage.delete([entry.key])
            elif size < entry.size:
                (kept,) = self._storage.get_ranges(entry.key, [(0, size)])
                self._storage.put(entry.key, bytes(kept))
        for name, key in self._keys.items():
            path = self._path / name
            if path.is_file() and counted.get(key, 0) < path.stat().st_size:
                os.truncate(path, counted[key]) if key in counted else path.unlink()
        self.exports.remove_abandoned(lineage)
        self._derive(lineage)

    def send(self, lineage: Lineage, step: int, *, epoch: int) -> list[Entry]:
        """Uploads what the store lacks.

        The event files of an observer follow with `send_recorded`, because a run that takes over removes unrecorded
        ones.

        Args:
            lineage: the sum of the store's journal.
            step: the global step of the newest checkpoint.
            epoch: the epoch of this run. 0 for an observer.

        Returns:
            The entries that the journal should record.
        """
        told = list(self._told(step))
        results = (one for one in told if isinstance(one, Evaluated))
        new = [one for one in results if one not in (self._brought.get(_id(one)), lineage.evaluations.get(_id(one)))]
        self._add_results_of_others(lineage, new)
        entries: list[Entry] = [*new]
        segments = [self._in_store(one, epoch) for one in told if isinstance(one, Segment)]
        sizes: dict[str, int] = {}  # a file is uploaded once, even if it was recorded several times
        for name, one in segments:
            before = lineage.marks.get((one.directory, one.name), ())
            grown = not before or before[-1].size < one.size
            if grown and one.size <= _size(self._path / name):  # it is smaller if it was removed during the run
                entries.append(one)
                sizes[name] = one.size
        self._due.update(sizes)
        if epoch:
            self.send_recorded()
        entries += self.exports.send(lineage, step)  # before the side files, in which exporters name the exports
        names = {name for name, _ in segments}
        for name in sorted(side_files(self._path)):
            if name not in names and not (is_event_file(name) and _EPOCH.search(name)):
                self._upload(name, name, (self._path / name).stat().st_size)
        self.exports.remove_deleted()
        return entries

    def send_recorded(self) -> None:
        """Uploads event files that are recorded."""
        for name, size in self._due.items():
            self._upload(name, self._keys[name], size)
        self._due.clear()

    def _told(self, step: int) -> Iterator[Evaluated | Segment]:
        """Yields the results, and the event files with the bytes that belong to them, from the journal of the copy.

        Only that journal knows which bytes of an event file belong to which results. A call that does not train may
        have no journal, and nothing else writes to its copy.
        """
        local = lineage_of(self._path)
        if local is None:
            yield from results_in(self._path)
        else:
            yield from local.evaluations.values()
            yield from (one for told in local.marks.values() for one in told)
        for name in side_files(self._path):
            if is_event_file(name) and (local is None or not _EPOCH.search(name)):
                folder, _, file = name.rpartition("/")
                yield Segment(directory=folder, name=file, size=(self._path / name).stat().st_size, step=step)

    def _in_store(self, segment: Segment, epoch: int) -> tuple[str, Segment]:
        """Returns the name of the file in the copy, and the segment for the journal of the store."""
        name = _key(segment)
        own = "" if epoch else f".{uuid.uuid4().hex[:12]}"
        key = self._keys.setdefault(name, _EPOCH.sub(rf"\g<1>{epoch:06d}{own}", name))
        return name, Segment(
            directory=segment.directory, name=key.rpartition("/")[2], size=segment.size, step=segment.step
        )

    def _upload(self, name: str, key: str, size: int) -> None:
        stamp = (size, (self._path / name).stat().st_mtime_ns)
        if self._sent.get(name) != stamp:
            upload_file(self._storage, key, self._path / name, size=size)
            self._sent[name] = stamp

    def _add_results_of_others(self, lineage: Lineage, new: list[Evaluated]) -> None:
        """Writes the results that others have recorded to the copy, because its files replace those of the store."""
        if lineage.number >= 0:
            known = {**lineage.evaluations, **{_id(one): one for one in new}}
            write_results_files(self._path, dataclasses.replace(lineage, evaluations=known))
            self._brought.update(lineage.evaluations)

    def _derive(self, lineage: Lineage) -> None:
        """Writes the results of the journal to the copy. Files that a user has copied there have no journal."""
        if lineage.number >= 0:
            write_results_files(self._path, lineage)
        self._brought = {_id(one): one for one in results_in(self._path)}


def _is_other(key: str) -> bool:
    return key.split("/")[0] in RESERVED or bool(export_of(key))


def _key(segment: Segment) -> str:
    return f"{segment.directory}/{segment.name}".lstrip("/")


def _id(result: Evaluated) -> tuple[str, int]:
    return result.name, result.step


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _counted(lineage: Lineage) -> dict[str, int]:
    """Returns the number of recorded bytes of each event file, by its key."""
    return {_key(one): one.size for one in lineage.segments}
