"""A plugin for tests that need an export format and no other package: writes the variables, and no program.

Hand the module over: `Plugins(extra=[array_format])`; the format is named "arrays".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core.plugins import Component

if TYPE_CHECKING:
    from estimator_core.export import ExportRequest

ESTIMATOR_PLUGIN_API = (1, 0)

_FILE = "arrays.json"


def estimator_components() -> list[Component]:
    """The format."""
    return [Component(kind="format", name="arrays", target=f"{__name__}:ArrayFormat", summary="Variables as JSON.")]


@dataclass(frozen=True, kw_only=True)
class ArrayExport:
    """What was read back: no signatures, and the variables in the manifest."""

    signatures: Mapping[str, Any]
    manifest: Mapping[str, Any]


class ArrayFormat:
    """Variables and provenance in one file of JSON. It cannot be served."""

    name = "arrays"

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes the file."""
        content = {
            "variables": {name: value.tolist() for name, value in request.variables.items()},
            "signatures": sorted(request.signatures),
            "global_step": request.global_step,
            "provenance": dict(request.provenance),
        }
        (directory / _FILE).write_text(json.dumps(content))

    def recognizes(self, directory: Path) -> bool:
        """Whether the file is there."""
        return (directory / _FILE).is_file()

    def load(self, directory: Path) -> ArrayExport:
        """Reads the file."""
        return ArrayExport(signatures={}, manifest=json.loads((directory / _FILE).read_text()))
