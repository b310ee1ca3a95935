"""Targets of records, `package.module:attribute`: importing them, and looking for them without importing."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any


def import_target(target: str) -> Any:
    """The object that a target names; for `package.module`, the module."""
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in filter(None, attribute.split(".")):
        found = getattr(found, part)
    return found


def missing_reason(target: str) -> str | None:
    """Why a target cannot exist, judged only by the files; None if nothing contradicts it.

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
    """The folder of the outermost package that has code, or the file of a module outside packages; None for neither.

    Example:
        >>> package_folder("json.decoder").name, package_folder("no_such_module"), package_folder("")
        ('json', None, None)
    """
    parts = module.partition(":")[0].split(".")
    for depth in range(len(parts) if all(parts) else 0):  # import hooks need not know what to do with an empty name
        spec = _find(".".join(parts[: depth + 1]))
        if spec is not None and spec.origin is not None and Path(spec.origin).exists():
            return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    return None


def _find(module: str) -> ModuleSpec | None:
    """The spec of a module, found by walking down the packages instead of importing them."""
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
