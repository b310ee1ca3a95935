"""File names and the manifest of a `stablehlo` export."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from estimator_core.errors import ExportError

FORMAT_VERSION = 1
MANIFEST, WEIGHTS = "manifest.json", "variables.safetensors"


def checksum(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(content: dict[str, Any]) -> str:
    """sha256 of a manifest without its own seal."""
    body = {name: value for name, value in content.items() if name != "seal"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest, after checking its seal and the checksum of every file.

    Raises:
        ExportError: the export is damaged, incomplete, or from a newer version; says which file.
    """
    path = directory / MANIFEST
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ExportError(f"{path} cannot be read ({error}): the export is damaged or incomplete. Export again.") from error
    if not isinstance(content, dict) or content.get("format") != "stablehlo":
        raise ExportError(f"{path} is no manifest of a stablehlo export.")
    if content.get("seal") != seal(content):
        raise ExportError(f"{path} was changed after it was written (its seal does not fit). Export again.")
    if content["format_version"] > FORMAT_VERSION:
        raise ExportError(f"{directory} was written in format version {content['format_version']}; this package reads up to {FORMAT_VERSION}. Install a newer estimator-exporters.")
    for name, expected in content["files"].items():
        file = directory / name
        if not file.is_file():
            raise ExportError(f"{file} is missing: the export is incomplete. Export again.")
        if checksum(file) != expected:
            raise ExportError(f"{file} is damaged: its checksum does not fit. Export again.")
    return content
