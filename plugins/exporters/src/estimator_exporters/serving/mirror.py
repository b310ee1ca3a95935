"""A local directory with the newest exports of a URL. Each refresh updates it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path, PurePosixPath

from estimator_core.storage import Entry, ObjectMissingError, local_copy, open_storage

_MANIFEST = "manifest.json"


class Mirror:
    """Keeps local copies of the newest complete exports under a URL, with the same names.

    An export counts as complete when it has its manifest, which is written last. Tools that copy exports may write the
    manifest before other files, so an export whose objects change is copied again.

    Args:
        url: the URL of an export, of a directory of time-stamped exports, or of a directory of several of those.

    Attributes:
        directory: the directory that `refresh` fills. Its last part is that of the URL. It is deleted with the mirror.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._storage = open_storage(self._url, make=False)
        holder = tempfile.mkdtemp(prefix="estimator-serve-")
        weakref.finalize(self, shutil.rmtree, holder, ignore_errors=True)
        self.directory = Path(holder, self._url.rpartition("/")[2])
        self.directory.mkdir()
        self._brought: dict[PurePosixPath, frozenset[Entry]] = {}

    def refresh(self, count: int) -> None:
        """Copies the newest exports of each directory, and removes older copies.

        Args:
            count: the number of exports per directory.

        Raises:
            StorageError: the store cannot be read. The local copies stay.
        """
        wanted = self._newest(count)
        for export in sorted(wanted):
            if self._brought.get(export) != wanted[export] and self._bring(export, self.directory / export):
                self._brought[export] = wanted[export]
        for export in sorted(self._here() - wanted.keys()):
            shutil.rmtree(self.directory / export)
            self._brought.pop(export, None)

    def _newest(self, count: int) -> dict[PurePosixPath, frozenset[Entry]]:
        """Returns the newest exports, with the objects of each."""
        entries = {PurePosixPath(entry.key): entry for entry in self._storage.list("")}
        exports = [key.parent for key in entries if key.name == _MANIFEST and len(key.parts) <= 3]
        below: dict[PurePosixPath, list[PurePosixPath]] = {}
        for export in exports:
            if export == PurePosixPath() or (export.name.isdecimal() and len(export.name) == 10):
                below.setdefault(export.parent, []).append(export)
        newest = (export for found in below.values() for export in sorted(found)[-count:])
        return {
            export: frozenset(entry for key, entry in entries.items() if key.is_relative_to(export))
            for export in newest
        }

    def _here(self) -> set[PurePosixPath]:
        found = (path.parent.relative_to(self.directory) for path in self.directory.glob(f"**/{_MANIFEST}"))
        return {PurePosixPath(path.as_posix()) for path in found if len(path.parts) <= 2}

    def _bring(self, export: PurePosixPath, target: Path) -> bool:
        """Copies an export to this machine. Returns False if it was removed after it was listed."""
        try:
            copy = local_copy(f"{self._url}/{export}" if export.parts else self._url)
        except ObjectMissingError:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        if export.parts:
            shutil.rmtree(target, ignore_errors=True)
            shutil.move(copy, target)
        else:
            shutil.copytree(copy, target, dirs_exist_ok=True)
        return True
