"""The files of the same program that a file imports, and the names of TensorFlow that they pass on."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_migration.cli.files import UnreadableError, read_file
from estimator_migration.reports.program import OtherFile

if TYPE_CHECKING:
    import libcst as cst

    from estimator_migration.resolve import Resolver

#: The other file, the imported name, and the names of TensorFlow that the import brings.
_Imported = tuple[Path, str, tuple[str, ...]]


def other_files(resolver: Resolver, path: Path, read: Collection[Path]) -> Iterator[OtherFile]:
    """Yields the files that a file imports and that are not read, or that pass on names of TensorFlow, by line.

    Args:
        resolver: the parsed file.
        path: the file.
        read: the files that are read.
    """
    places = {each.resolve() for each in read}
    found: dict[Path, list[tuple[int, str, tuple[str, ...]]]] = {}
    for line, other, name, passed in sorted(_imports(resolver, path)):
        found.setdefault(other, []).append((line, name, passed))
    for other, imports in found.items():
        names = tuple(dict.fromkeys(name for _, name, _ in imports))
        passed_on = tuple(dict.fromkeys(name for _, _, passed in imports for name in passed))
        is_read = other.resolve() in places
        if passed_on or not is_read:
            yield OtherFile(line=imports[0][0], path=str(other), read=is_read, names=names, of_tensorflow=passed_on)


def _imports(resolver: Resolver, path: Path) -> Iterator[tuple[int, Path, str, tuple[str, ...]]]:
    """Yields the line, the other file, the imported name, and the names of TensorFlow that the import brings."""
    import libcst as cst
    from libcst import matchers

    from estimator_migration.assigning import dotted_name

    used = {dotted_name(each) for group in resolver.attributes.values() for each in group}
    for node in matchers.findall(resolver.module, matchers.Import() | matchers.ImportFrom()):
        if isinstance(node, cst.Import):
            found = _of_import(node, path, used)
        else:
            found = _of_import_from(cst.ensure_type(node, cst.ImportFrom), path, used, resolver.names)
        for imported in found:
            yield resolver.line(node), *imported


def _of_import(node: cst.Import, path: Path, used: Collection[str]) -> Iterator[_Imported]:
    from estimator_migration.resolve import is_ours

    for alias in node.names:
        name = alias.evaluated_name
        other = None if is_ours(name) else _file(_folders(path), name)
        if other is not None:
            yield other, name, _used_of(other, alias, used)


def _of_import_from(
    node: cst.ImportFrom, path: Path, used: Collection[str], names: Collection[str]
) -> Iterator[_Imported]:
    import libcst as cst

    from estimator_migration.assigning import dotted_name
    from estimator_migration.resolve import is_ours

    module = "" if node.module is None else dotted_name(node.module)
    if not node.relative and is_ours(module):
        return
    folders = [path.parent.joinpath(*[".."] * (len(node.relative) - 1))] if node.relative else _folders(path)
    whole = _file(folders, module)
    if isinstance(node.names, cst.ImportStar):
        if whole is not None:
            yield whole, "*", tuple(each for each in _passed_on(whole) if each in names)
        return
    for alias in node.names:
        name = alias.evaluated_name
        part = _file(folders, f"{module}.{name}".lstrip("."))
        if part is not None:
            yield part, name, _used_of(part, alias, used)
        elif whole is not None:
            yield whole, name, (name,) if name in _passed_on(whole) else ()


def _used_of(file: Path, alias: cst.ImportAlias, used: Collection[str]) -> tuple[str, ...]:
    """Returns the names of TensorFlow that an import brings from a file, of those that the program uses."""
    bound = alias.evaluated_alias or alias.evaluated_name
    return tuple(name for name in (f"{bound}.{each}" for each in _passed_on(file)) if name in used)


def _folders(path: Path) -> list[Path]:
    """Returns the folders in which Python may find modules: that of the file, and that of its package."""
    folder = path.parent.absolute()
    while (folder / "__init__.py").exists() and folder != folder.parent:
        folder = folder.parent
    return [path.parent, folder if path.is_absolute() else Path(os.path.relpath(folder))]


def _file(folders: list[Path], module: str) -> Path | None:
    for folder in folders:
        place = folder.joinpath(*filter(None, module.split(".")))
        for file in (place / "__init__.py", *([place.with_name(f"{place.name}.py")] if module else [])):
            if file.is_file():
                return file if file.is_absolute() else Path(os.path.relpath(file))
    return None


@functools.lru_cache(maxsize=256)
def _passed_on(path: Path) -> Mapping[str, str]:
    """Returns the names of a file that mean a name of TensorFlow. A file that cannot be read has none."""
    from libcst import ParserSyntaxError

    from estimator_migration.resolve import Resolver

    try:
        return Resolver(read_file(path).source).of_module
    except (UnreadableError, ParserSyntaxError, RecursionError):
        return {}
