"""The code of plugins: imports targets, finds code without importing it, and identifies it by a hash."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any


def import_target(target: str) -> Any:
    """Imports the object that a target names; for `package.module`, the module."""
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in filter(None, attribute.split(".")):
        found = getattr(found, part)
    return found


def missing_reason(target: str) -> str | None:
    """Returns the reason why a target cannot exist, based only on files; None if it may exist.

    Example:
        >>> missing_reason("json.decoder:JSONDecoder") is None
        True
        >>> missing_reason("json.decodr:JSONDecoder")
        'module json.decodr does not exist'
        >>> missing_reason("json.decoder:NoSuchName")
        'json.decoder has no NoSuchName'
    """
    module, _, attribute = target.partition(":")
    spec = _find(module)
    if spec is None:
        return f"module {module} does not exist"
    source = Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    if source is None or not attribute:
        return None
    first = attribute.split(".")[0]
    text = source.read_text(encoding="utf-8", errors="replace")
    if re.search(rf"\b{re.escape(first)}\b", text) or "import *" in text:
        return None
    return f"{module} has no {first}"


def package_folder(module: str) -> Path | None:
    """Returns the folder of the outermost package that has code, or the file of a module outside packages; None for
    neither.

    Example:
        >>> package_folder("json.decoder").name, package_folder("no_such_module"), package_folder("")
        ('json', None, None)
    """
    parts = module.partition(":")[0].split(".")
    for depth in range(len(parts) if all(parts) else 0):  # import hooks may not support an empty name
        spec = _find(".".join(parts[: depth + 1]))
        if spec is not None and spec.origin is not None and Path(spec.origin).exists():
            return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    return None


def _find(module: str) -> ModuleSpec | None:
    """Finds the spec of a module by walking down the packages instead of importing them."""
    path: Any = None
    spec: ModuleSpec | None = None
    parts = module.split(".")
    for depth in range(len(parts)):
        spec = _find_one(".".join(parts[: depth + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and depth + 1 < len(parts):
            return None
    return spec


def _find_one(name: str, path: Any) -> ModuleSpec | None:

    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(name, path) if find_spec is not None else None
        if spec is not None:
            return spec
    return PathFinder.find_spec(name, path)


#: Files that installers add to a wheel, and that differ between installers.
_OF_THE_INSTALLER = frozenset({"INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "RECORD"})


def code_hash(distribution: metadata.Distribution | None, modules: Iterable[str]) -> str:
    """Returns the hash of a distribution.

    It is the hash of its RECORD, which is the same for one wheel on every machine. For an editable installation,
    without a RECORD, or if another folder on the path hides it, it is the hash of its sources. Without files, it is "".

    Args:
        distribution: the installed distribution; None for a plugin without one.
        modules: the names of its modules, which are not imported.

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
    """Returns whether the imported code is not the installed code. Files may be links to a cache."""
    root = Path(str(distribution.locate_file(""))).resolve()
    return not all(folder is None or folder.parent.resolve().is_relative_to(root) for folder in folders)


def _of_record(text: str) -> Iterator[str]:
    """Yields one line per file of the wheel. Scripts are excluded, because they contain the path of the interpreter."""
    for path, told, *_ in (row for row in csv.reader(text.splitlines()) if len(row) > 1):
        own = ".dist-info/" in path and path.rpartition("/")[2] in _OF_THE_INSTALLER
        if told and not own and not path.startswith(("..", "/")) and not path.endswith(".pyc"):
            yield f"{path} {told}\n"


def _of_sources(folders: Iterable[Path | None]) -> Iterator[str]:
    for folder in filter(None, folders):
        above = len(str(folder.parent).rstrip(os.sep)) + 1
        for path in _files_of(str(folder)):
            with open(path, "rb", buffering=0) as file:
                digest = hashlib.sha256(file.read())
            yield f"{path[above:].replace(os.sep, '/')} {digest.hexdigest()}\n"


def _files_of(folder: str) -> Iterator[str]:
    """Yields files that are neither hidden nor compiled. A package has hundreds, so no `Path` objects are created."""
    if not os.path.isdir(folder):
        yield folder
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        shown = (name for name in files if not name.startswith(".") and not name.endswith(".pyc"))
        yield from (path for name in shown if os.path.isfile(path := os.path.join(root, name)))
