"""The exports of a working copy, including those of earlier processes, and the exports in the store."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from estimator_core.journal import Exported, Lineage
from estimator_core.storage import Entry, ObjectMissingError, Storage
from estimator_storage.at_urls.directories import download_file, upload_directory
from estimator_storage.at_urls.side_files import complete_exports, export_of

MANIFEST = "manifest.json"
#: The seconds after which an incomplete export that was not changed counts as left by a killed process.
_ABANDONED_SECS = 86_400.0


class KeptExports:
    """Copies exports from and to the store. In the store, an export is complete when its manifest exists.

    The copy holds the manifests of exports that earlier processes uploaded. An exporter therefore sees what was
    exported from which checkpoint, and an export that it deletes is removed from the store. Other files are downloaded
    when needed.

    Args:
        storage: the storage of the model_dir.
        path: the path of the working copy.
    """

    def __init__(self, storage: Storage, path: Path) -> None:
        self._storage, self._path = storage, path
        self._known: set[str] = set()  # in the copy and in the store

    def bring(self, lineage: Lineage) -> None:
        """Downloads the manifests. In a format without a manifest, an export is complete once it is recorded."""
        for key, entries in self._in_store().items():
            manifest = entries.get(MANIFEST)
            if (manifest is None and key not in lineage.exports) or (self._path / key).exists():
                continue
            (self._path / key).mkdir(parents=True)
            if manifest is not None:
                download_file(self._storage, manifest, self._path / key / MANIFEST)
            self._known.add(key)

    def complete(self, path: Path) -> None:
        """Downloads the missing files of an export to the copy. The export may have been removed from the store."""
        if not path.is_relative_to(self._path):
            return
        key = path.relative_to(self._path).as_posix()
        for name, entry in self._in_store().get(key, {}).items() if key in self._known else ():
            file = path / name
            if not file.is_file() or file.stat().st_size != entry.size:
                file.unlink(missing_ok=True)
                with contextlib.suppress(ObjectMissingError):
                    download_file(self._storage, entry, file)

    def send(self, lineage: Lineage, step: int) -> Iterator[Exported]:
        """Uploads new exports.

        Args:
            lineage: the sum of the store's journal.
            step: the global step of the weights, for exports that do not record it.

        Returns:
            The entries for the journal: these exports, and those that a killed process uploaded and did not record.
        """
        for key in sorted(complete_exports(self._path)):
            if key not in self._known:
                upload_directory(self._storage, key, self._path / key, last=MANIFEST)
                self._known.add(key)
            if key not in lineage.exports:
                yield _entry(key, self._path / key / MANIFEST, step)

    def remove_deleted(self) -> None:
        """Removes from the store the exports that were deleted from the copy.

        The manifest is removed first, so that no process reads the rest.
        """
        gone = self._known.difference(complete_exports(self._path))
        for key in sorted(gone):
            self._storage.delete([f"{key}/{MANIFEST}"])
            self._storage.delete([entry.key for entry in self._storage.list(key)])
        self._known -= gone

    def remove_abandoned(self, lineage: Lineage) -> None:
        """Removes incomplete exports of killed processes. Recent ones stay, because their process may be active."""
        now = self._storage.now()
        for key, entries in self._in_store().items():
            newest = max(entry.modified for entry in entries.values())
            if MANIFEST not in entries and key not in lineage.exports and now - newest > _ABANDONED_SECS:
                self._storage.delete([entry.key for entry in entries.values()])

    def _in_store(self) -> dict[str, dict[str, Entry]]:
        """Returns the objects of each export by their names in it."""
        found: dict[str, dict[str, Entry]] = {}
        for entry in self._storage.list("export"):
            if export := export_of(entry.key):
                found.setdefault(export, {})[entry.key.removeprefix(f"{export}/")] = entry
        return found


def _entry(key: str, manifest: Path, step: int) -> Exported:
    if not manifest.is_file():
        return Exported(place=key, step=step, digest="")
    sealed = manifest.read_bytes()
    try:
        said = json.loads(sealed)["global_step"]
    except (ValueError, KeyError, TypeError, RecursionError):
        said = None
    return Exported(place=key, step=said if type(said) is int else step, digest=hashlib.sha256(sealed).hexdigest())
