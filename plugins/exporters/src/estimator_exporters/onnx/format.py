"""The `onnx` export format as a component."""

from __future__ import annotations

from pathlib import Path

from estimator_core.export import ExportRequest, LoadedExport
from estimator_exporters.bundle.extras import require
from estimator_exporters.bundle.manifest import has_manifest_of

NAME = "onnx"


class OnnxFormat:
    """ONNX graphs, each with its weights, beside our manifest: onnxruntime reads them without this package."""

    name = NAME

    def check(self, request: ExportRequest) -> None:
        """Refuses what ONNX cannot hold, by name."""
        require(NAME, "jax2onnx", "onnx", "onnxruntime")
        from estimator_exporters.onnx.write import check

        check(request)

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes an export into an empty directory."""
        require(NAME, "jax2onnx", "onnx", "onnxruntime")
        from estimator_exporters.onnx.write import write

        write(request, Path(directory))

    def load(self, directory: Path) -> LoadedExport:
        """Reads an export back."""
        require(NAME, "onnxruntime")
        from estimator_exporters.onnx.load import load

        return load(Path(directory))

    def recognizes(self, directory: Path) -> bool:
        """Whether the manifest names this format."""
        return has_manifest_of(Path(directory), NAME)
