"""The manifest of an export: its description, and the checksum of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

from estimator_core.errors import ExportError

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
DEFAULT_FORMAT = "stablehlo"
_KEYS = {"signatures": dict, "files": dict, "provenance": dict, "receiver": dict, "global_step": int}


def checksum(path: Path) -> str:
    """Returns the sha256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(content: dict[str, Any]) -> str:
    """Returns the sha256 digest of a manifest without its own seal."""
    body = {name: value for name, value in content.items() if name != "seal"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def write_manifest(directory: Path, content: dict[str, Any]) -> None:
    """Writes the manifest of a directory whose files are complete."""
    files = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    content = {
        **content,
        "format_version": FORMAT_VERSION,
        "files": {name: checksum(directory / name) for name in files},
    }
    (directory / MANIFEST).write_text(json.dumps({**content, "seal": seal(content)}, indent=1) + "\n")


def format_of(directory: Path) -> str | None:
    """Returns the format that a manifest names, without other checks. None if there is no manifest."""
    try:
        content = json.loads((directory / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content.get("format") if isinstance(content, dict) else None


def is_checkpoint(directory: Path) -> bool:
    """Returns whether a directory is a checkpoint. The format of a checkpoint is a number, that of an export a name."""
    return isinstance(cast(Any, format_of(directory)), int)


def has_manifest_of(directory: Path, format_name: str) -> bool:
    """Returns whether an export has a format. An unreadable manifest counts as the default format, which reports it."""
    if not (directory / MANIFEST).is_file():
        return False
    found = format_of(directory)
    return found == format_name if isinstance(found, str) else format_name == DEFAULT_FORMAT


def read_manifest(directory: Path, format_name: str) -> dict[str, Any]:
    """Returns the manifest after verifying its seal and the checksum of every file.

    Raises:
        ExportError: the export is damaged, incomplete, of another format, or of a newer version. The message names the
            file.
    """
    path = directory / MANIFEST
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ExportError(
            f"{path} cannot be read ({error}): the export is damaged or incomplete. Export again."
        ) from error
    if is_checkpoint(directory):
        raise ExportError(
            f"{directory} is a checkpoint, not an export. Export it with `estimator export`, and give the directory of "
            "the export."
        )
    if not isinstance(content, dict) or content.get("format") != format_name:
        raise ExportError(f"{path} is not the manifest of an export of the format {format_name!r}.")
    version = content.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ExportError(
            f"{directory} was written in format version {version}; this package reads up to {FORMAT_VERSION}. "
            "Install a newer estimator-exporters."
        )
    if content.get("seal") != seal(content):
        raise ExportError(f"{path} was changed after it was written (its seal does not match). Export again.")
    if version != FORMAT_VERSION or not all(isinstance(content.get(key), kind) for key, kind in _KEYS.items()):
        raise ExportError(f"{path} lacks keys that a manifest must have: {', '.join(_KEYS)}. Export again.")
    for name, expected in content["files"].items():
        _check_file(directory, name, expected)
    return content


def file_of(directory: Path, manifest: Mapping[str, Any], name: Any) -> Path:
    """Returns the path of a file that the manifest names and whose checksum was verified.

    Raises:
        ExportError: the name is not among the files of the manifest.
    """
    if not isinstance(name, str) or name not in manifest["files"]:
        raise ExportError(f"{directory / MANIFEST} refers to {name!r}, which is not among its files. Export again.")
    return directory / name


def _check_file(directory: Path, name: str, expected: Any) -> None:
    pure = PurePosixPath(name)
    file = directory / name
    if pure.is_absolute() or ".." in pure.parts or not file.resolve().is_relative_to(directory.resolve()):
        raise ExportError(f"{directory / MANIFEST} names a file outside the export: {name!r}. It is not read.")
    if not file.is_file():
        raise ExportError(f"{file} is missing: the export is incomplete. Export again.")
    if checksum(file) != expected:
        raise ExportError(f"{file} is damaged: its checksum does not match. Export again.")
