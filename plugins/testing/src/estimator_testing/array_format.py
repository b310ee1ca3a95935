"""A plugin for tests that need an export format without another package. It writes the variables, and no program.

Pass the module as `Plugins(extra=[array_format])`. The name of the format is "arrays". Exports are made by
estimator-signatures, as in every format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np

from estimator_core.plugins import Component

if TYPE_CHECKING:
    from estimator_core.export import ExportRequest, Feature, SignatureSpec

ESTIMATOR_PLUGIN_API = (1, 0)

_FILE = "arrays.json"
#: The functions that this process exported, by export and signature. A saved program would need another package.
_WRITTEN: WeakValueDictionary[tuple[str, str], SignatureSpec] = WeakValueDictionary()


def estimator_components() -> list[Component]:
    """Returns the format."""
    return [Component(kind="format", name="arrays", target=f"{__name__}:ArrayFormat", summary="Variables as JSON.")]


@dataclass(frozen=True, kw_only=True)
class ArraySignature:
    """A function of the process that wrote the export, with the variables that were loaded."""

    spec: SignatureSpec
    variables: Mapping[str, np.ndarray]

    @property
    def inputs(self) -> Mapping[str, Feature]:
        """The input features by name."""
        return self.spec.inputs

    @property
    def outputs(self) -> Mapping[str, Feature]:
        """The output features by name."""
        return self.spec.outputs

    def __call__(self, /, **arrays: Any) -> dict[str, np.ndarray]:
        """Returns the outputs."""
        return {name: np.asarray(value) for name, value in self.spec.function(self.variables, arrays).items()}


@dataclass(frozen=True, kw_only=True)
class ArrayExport:
    """A loaded export. The variables are in the manifest. Only the process that wrote it has the signatures."""

    signatures: Mapping[str, ArraySignature]
    manifest: Mapping[str, Any]


class ArrayFormat:
    """Writes variables and provenance to one JSON file. It cannot be served."""

    name = "arrays"

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes the file."""
        export = uuid4().hex
        _WRITTEN.update({(export, name): spec for name, spec in request.signatures.items()})
        content = {
            "export": export,
            "variables": {name: value.tolist() for name, value in request.variables.items()},
            "dtypes": {name: str(value.dtype) for name, value in request.variables.items()},
            "signatures": sorted(request.signatures),
            "global_step": request.global_step,
            "provenance": dict(request.provenance),
        }
        (directory / _FILE).write_text(json.dumps(content))

    def recognizes(self, directory: Path) -> bool:
        """Returns whether the directory holds the file."""
        return (directory / _FILE).is_file()

    def load(self, directory: Path) -> ArrayExport:
        """Reads the file."""
        content = json.loads((directory / _FILE).read_text())
        dtypes: Mapping[str, str] = content["dtypes"]
        variables = {name: np.array(value, dtypes[name]) for name, value in content["variables"].items()}
        known = {name: _WRITTEN.get((content["export"], name)) for name in content["signatures"]}
        return ArrayExport(
            signatures={
                name: ArraySignature(spec=spec, variables=variables) for name, spec in known.items() if spec is not None
            },
            manifest=content,
        )
