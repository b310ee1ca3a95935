"""Initial values from the variables of an export."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load_file

from estimator_core.model import InitialValue, VariableSpec
from estimator_exporters.bundle.manifest import file_of, read_manifest

if TYPE_CHECKING:
    import jax


class ExportedVariables:
    """Initial values for variables from the variables of the same names in an export of the format `stablehlo`.

    With it, `warm_start_from`, `init_from_checkpoint` and `load_variables` take an export, as tf.estimator's
    `warm_start_from` takes a SavedModel.

    Args:
        path: the directory of the export.

    Example:
        >>> ExportedVariables("runs/one/export/final/1700000000").path
        'runs/one/export/final/1700000000'
    """

    title = "an export"
    conversion = "name the model_dir that it was exported from"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def initial_values(
        self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
    ) -> Mapping[str, InitialValue]:
        """Returns the values of the variables that the export has."""
        found = self.load(self.path)
        return {
            path: InitialValue(value=found[path], origin=f"the export {self.path}") for path in specs if path in found
        }

    @staticmethod
    def load(path: str) -> dict[str, np.ndarray]:
        """Returns the variables of the export by name, after verifying every file.

        Raises:
            ExportError: the export is damaged, incomplete, or from a newer version.
        """
        directory = Path(path)
        manifest = read_manifest(directory, "stablehlo")
        return load_file(file_of(directory, manifest, manifest.get("variables")))
