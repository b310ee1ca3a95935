"""The newest exports of a URL in a directory of this machine, brought up to date at each look."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path, PurePosixPath

from estimator_core.storage import Entry, ObjectMissingError, local_copy, open_storage

_MANIFEST = "manifest.json"


class Mirror:
    """Holds the newest complete exports below a URL, under the names that they have there.

    An export counts once its manifest is there, which is written last. Tools that copy exports may write it before
    other files, so an export whose objects change is brought again.

    Args:
        url: of an export, of a directory of time-stamped exports, or of a directory of several of those.

    Attributes:
        directory: filled by `refresh`; its last part is that of the URL. It goes with the mirror.
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
        """Brings the newest exports of each directory, and removes those that are no longer among them.

        Args:
            count: how many of each directory.

        Raises:
            StorageError: the store cannot be read; what is here stays.
        """
        wanted = self._newest(count)
        for export in sorted(wanted):
            if self._brought.get(export) != wanted[export] and self._bring(export, self.directory / export):
                self._brought[export] = wanted[export]
        for export in sorted(self._here() - wanted.keys()):
            shutil.rmtree(self.directory / export)
            self._brought.pop(export, None)

    def _newest(self, count: int) -> dict[PurePosixPath, frozenset[Entry]]:
        """The newest exports, with the objects of each."""
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
        """Copies an export to this machine; False if it has been removed since it was listed."""
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
