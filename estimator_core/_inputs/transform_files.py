"""Writes host transforms into a directory and reads them back: data only, verified with checksums."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from estimator_core._inputs.transforms import HostTransform
from estimator_core.errors import ExportError

#: The index of a directory of transforms.
INDEX = "transforms.json"


def save_transforms(transforms: Sequence[HostTransform], directory: str | Path) -> None:
    """Writes `transforms` and copies of their files into `directory`, which is created.

    Raises:
        ExportError: a configuration is not JSON, or a file is missing.

    Example:
        >>> import tempfile
        >>> save_transforms([], tempfile.mkdtemp())
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    entries = [_written(transform, index, directory) for index, transform in enumerate(transforms)]
    (directory / INDEX).write_text(
        json.dumps({"transforms": entries}, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


def load_transforms(
    directory: str | Path, lookup: Callable[[str], Callable[..., HostTransform]]
) -> list[HostTransform]:
    """Reads the transforms that `save_transforms` wrote. It runs only the code of the classes from `lookup`.

    Args:
        directory: where they were written.
        lookup: from a transform's name to its class, such as `lambda name: plugins.get("transform", name)`.

    Raises:
        ExportError: there is nothing to read, a file is damaged, or a class has another version.
    """
    directory = Path(directory)
    try:
        entries: list[dict[str, Any]] = json.loads((directory / INDEX).read_text(encoding="utf-8"))["transforms"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{directory} holds no host transforms that can be read: {error!r}.") from error
    return [_read(entry, directory, lookup) for entry in entries]


def _written(transform: HostTransform, index: int, directory: Path) -> dict[str, Any]:
    what = f"The host transform '{transform.name}'"
    config = dict(transform.config())
    try:
        json.dumps(config, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ExportError(f"{what} has a configuration that is not JSON ({error}): {config!r}.") from error
    files: dict[str, dict[str, str]] = {}
    for argument, path in transform.files.items():
        target = Path(f"{index}_{transform.name}") / argument / Path(path).name
        (directory / target).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(path, directory / target)
        except OSError as error:
            raise ExportError(f"{what} names a file that cannot be copied: {argument} ({error}).") from error
        files[argument] = {"path": target.as_posix(), "sha256": _sha256(directory / target)}
    return {"name": transform.name, "version": transform.version, "config": config, "files": files}


def _read(
    entry: dict[str, Any], directory: Path, lookup: Callable[[str], Callable[..., HostTransform]]
) -> HostTransform:
    name, what = entry["name"], f"The host transform '{entry['name']}'"
    factory = lookup(name)
    version = getattr(factory, "version", None)
    if version != entry["version"]:
        raise ExportError(
            f"{what} was saved by version {entry['version']} and the installed package has version {version}. "
            "Install the package the export was made with, or export again."
        )
    files = {argument: _checked_file(what, saved, directory) for argument, saved in entry["files"].items()}
    try:
        return factory(**entry["config"], **files)
    except Exception as error:
        raise ExportError(f"{what} cannot be made from {entry['config']!r}: {error!r}.") from error


def _checked_file(what: str, saved: dict[str, str], directory: Path) -> Path:
    path = directory / saved["path"]
    if not path.resolve().is_relative_to(directory.resolve()):
        raise ExportError(f"{what} names a file outside its directory: {saved['path']!r}.")
    if not path.is_file() or _sha256(path) != saved["sha256"]:
        raise ExportError(f"{what} has a file that is missing or damaged: {path}. Copy the export again.")
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
