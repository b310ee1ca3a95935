"""The `saved_model` export format as a component."""

from __future__ import annotations

from pathlib import Path

from estimator_core.export import ExportRequest, LoadedExport
from estimator_exporters.bundle.extras import require
from estimator_exporters.bundle.manifest import has_manifest_of

NAME = "saved_model"


class SavedModelFormat:
    """A TensorFlow SavedModel with the manifest. `tf.saved_model.load(directory)` reads it without this package."""

    name = NAME

    def check(self, request: ExportRequest) -> None:
        """Refuses programs that a SavedModel or the oldest supported TensorFlow cannot represent."""
        require(NAME, "tensorflow")
        from estimator_exporters.saved_model.write import check

        check(request)

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes an export into an empty directory."""
        require(NAME, "tensorflow")
        from estimator_exporters.saved_model.write import write

        write(request, Path(directory))

    def load(self, directory: Path) -> LoadedExport:
        """Loads an export."""
        require(NAME, "tensorflow")
        from estimator_exporters.saved_model.load import load

        return load(Path(directory))

    def recognizes(self, directory: Path) -> bool:
        """Returns whether the manifest names this format."""
        return has_manifest_of(Path(directory), NAME)
