"""The files next to the checkpoints of a model_dir: event files, results, records and exports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from estimator_core.storage import Entry, Storage

#: Names that belong to the storage itself, or that are published in another way.
RESERVED = frozenset({"checkpoints", "data", "identity", "journal", "leases", "snapshots"})
#: Endings of files that belong to one process of one machine.
_OWN = (".lock", ".tmp")


def side_files(root: Path) -> Iterator[str]:
    """Yields the files of a working copy that are published unchanged, relative to the copy.

    Exports are not among them, because they are published as a unit.
    """
    for found, folders, names in os.walk(root):
        at = Path(found).relative_to(root)
        folders[:] = [name for name in folders if _counts(at, name) and not _is_export(at / name)]
        for name in names:
            if _counts(at, name) and not name.endswith(_OWN) and (Path(found) / name).is_file():
                yield (at / name).as_posix()


def of_this_run(storage: Storage) -> list[Entry]:
    """Returns the objects of a model_dir. Objects of a nested model_dir belong to another run and are left out.

    Args:
        storage: the storage of the model_dir.
    """
    entries = list(storage.list(""))
    begun = {entry.key.removesuffix("/identity") for entry in entries if entry.key.endswith("/identity")}
    below = begun & {entry.key.partition("/journal/")[0] for entry in entries}
    return [entry for entry in entries if below.isdisjoint(map(str, PurePosixPath(entry.key).parents))]


def complete_exports(root: Path) -> Iterator[str]:
    """Yields the complete exports of a working copy, relative to the copy."""
    for found, folders, _ in os.walk(root / "export"):
        at = Path(found).relative_to(root)
        exports = [name for name in folders if _is_export(at / name)]
        yield from ((at / name).as_posix() for name in exports)
        folders[:] = [name for name in folders if name not in exports and _counts(at, name)]


def is_event_file(key: str) -> bool:
    """Returns whether TensorBoard reads the file.

    Example:
        >>> is_event_file("eval/events.out.tfevents.0000000001")
        True
    """
    return "tfevents" in key.rpartition("/")[2]


def export_of(key: str) -> str:
    """Returns the export that a file belongs to, or "".

    Example:
        >>> export_of("export/best/1700000000/manifest.json")
        'export/best/1700000000'
    """
    return next((parent.as_posix() for parent in Path(key).parents if _is_export(parent)), "")


def _is_export(path: Path) -> bool:
    return path.parts[:1] == ("export",) and path.name.isascii() and path.name.isdigit() and len(path.name) == 10


def _counts(at: Path, name: str) -> bool:
    return not name.startswith((".", "temp-")) and (at != Path() or name not in RESERVED)
