"""The `saved_model` export format as a component."""

from __future__ import annotations

from pathlib import Path

from estimator_core.export import ExportRequest, LoadedExport
from estimator_exporters.bundle.extras import require
from estimator_exporters.bundle.manifest import has_manifest_of

NAME = "saved_model"


class SavedModelFormat:
    """A TensorFlow SavedModel beside our manifest: `tf.saved_model.load(directory)` reads it without this package."""

    name = NAME

    def check(self, request: ExportRequest) -> None:
        """Refuses what a SavedModel or the oldest promised TensorFlow cannot hold."""
        require(NAME, "tensorflow")
        from estimator_exporters.saved_model.write import check

        check(request)

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes an export into an empty directory."""
        require(NAME, "tensorflow")
        from estimator_exporters.saved_model.write import write

        write(request, Path(directory))

    def load(self, directory: Path) -> LoadedExport:
        """Reads an export back."""
        require(NAME, "tensorflow")
        from estimator_exporters.saved_model.load import load

        return load(Path(directory))

    def recognizes(self, directory: Path) -> bool:
        """Whether the manifest names this format."""
        return has_manifest_of(Path(directory), NAME)
