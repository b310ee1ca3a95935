"""The newest exports of a URL in a directory of this machine, brought up to date at each look."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path, PurePosixPath

from estimator_core.storage import ObjectMissingError, local_copy, open_storage

_MANIFEST = "manifest.json"


class Mirror:
    """Holds the newest complete exports below a URL, under the names that they have there.

    An export counts once its manifest is there, which is written last.

    Args:
        url: of an export, of a directory of time-stamped exports, or of a directory of several of those.

    Attributes:
        directory: filled by `refresh`; its last part is that of the URL. It goes with the mirror.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._storage = open_storage(self._url)
        holder = tempfile.mkdtemp(prefix="estimator-serve-")
        weakref.finalize(self, shutil.rmtree, holder, ignore_errors=True)
        self.directory = Path(holder, self._url.rpartition("/")[2])
        self.directory.mkdir()

    def refresh(self, count: int) -> None:
        """Brings the newest exports of each directory, and removes those that are no longer among them.

        Args:
            count: how many of each directory.

        Raises:
            StorageError: the store cannot be read; what is here stays.
        """
        wanted = self._newest(count)
        for export in sorted(wanted):
            target = self.directory / export
            if not (target / _MANIFEST).exists():
                self._bring(export, target)
        for export in sorted(self._here() - wanted):
            shutil.rmtree(self.directory / export)

    def _newest(self, count: int) -> set[PurePosixPath]:
        keys = (PurePosixPath(entry.key) for entry in self._storage.list(""))
        exports = [key.parent for key in keys if key.name == _MANIFEST and len(key.parts) <= 3]
        below: dict[PurePosixPath, list[PurePosixPath]] = {}
        for export in exports:
            if export == PurePosixPath() or (export.name.isdecimal() and len(export.name) == 10):
                below.setdefault(export.parent, []).append(export)
        return {export for found in below.values() for export in sorted(found)[-count:]}

    def _here(self) -> set[PurePosixPath]:
        found = (path.parent.relative_to(self.directory) for path in self.directory.glob(f"**/{_MANIFEST}"))
        return {PurePosixPath(path.as_posix()) for path in found if len(path.parts) <= 2}

    def _bring(self, export: PurePosixPath, target: Path) -> None:
        try:
            copy = local_copy(f"{self._url}/{export}" if export.parts else self._url)
        except ObjectMissingError:  # removed since it was listed
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if export.parts:
            shutil.move(copy, target)
        else:
            shutil.copytree(copy, target, dirs_exist_ok=True)
