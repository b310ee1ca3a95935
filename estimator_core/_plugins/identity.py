"""Which code a plugin is: a hash of what an installer wrote down, or of its sources where they may change in place."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from estimator_core._plugins.targets import package_folder

#: What an installer adds to a wheel, differently from one installer to the next.
_OF_THE_INSTALLER = frozenset({"INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "RECORD"})


def code_hash(distribution: metadata.Distribution | None, modules: Iterable[str]) -> str:
    """The hash of a distribution: of its RECORD, the same for one wheel wherever it is installed; of the sources of its
    modules where it is editable, has no RECORD, or another folder on the path hides it; "" where there are no files.

    Args:
        distribution: as installed; None for a plugin that has none.
        modules: names of its modules, not imported.

    Example:
        >>> code_hash(metadata.distribution("pluggy"), ["pluggy"])[:7], code_hash(None, ["no_such_module"])
        ('sha256:', '')
    """
    folders = {package_folder(module) for module in modules}
    installed = distribution is not None and not _editable(distribution) and not _hidden(distribution, folders)
    listed = distribution.read_text("RECORD") if distribution is not None and installed else None
    lines = sorted(_of_record(listed) if listed else _of_sources(folders))
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}" if lines else ""


def _editable(distribution: metadata.Distribution) -> bool:
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable"))


def _hidden(distribution: metadata.Distribution, folders: Iterable[Path | None]) -> bool:
    """Whether what is imported lies elsewhere than what was installed. Files may be links to a cache."""
    root = Path(str(distribution.locate_file(""))).resolve()
    return not all(folder is None or folder.parent.resolve().is_relative_to(root) for folder in folders)


def _of_record(text: str) -> Iterator[str]:
    """A line a file of the wheel; scripts, which name the interpreter, lie outside."""
    for path, told, *_ in (row for row in csv.reader(text.splitlines()) if len(row) > 1):
        own = ".dist-info/" in path and path.rpartition("/")[2] in _OF_THE_INSTALLER
        if told and not own and not path.startswith(("..", "/")) and not path.endswith(".pyc"):
            yield f"{path} {told}\n"


def _of_sources(folders: Iterable[Path | None]) -> Iterator[str]:
    for folder in filter(None, folders):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            inner = path.relative_to(folder.parent)
            hidden = any(part.startswith(".") or part == "__pycache__" for part in inner.parts)
            if path.is_file() and not hidden and path.suffix != ".pyc":
                yield f"{inner.as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
