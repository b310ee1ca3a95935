"""The `onnx` export format as a component."""

from __future__ import annotations

from pathlib import Path

from estimator_core.export import ExportRequest, LoadedExport
from estimator_exporters.bundle.extras import require
from estimator_exporters.bundle.manifest import has_manifest_of

NAME = "onnx"


class OnnxFormat:
    """ONNX graphs, each with its weights, and the manifest. onnxruntime reads the graphs without this package."""

    name = NAME

    def check(self, request: ExportRequest) -> None:
        """Refuses programs that ONNX cannot represent. The message names the reason."""
        require(NAME, "jax2onnx", "onnx", "onnxruntime")
        from estimator_exporters.onnx.write import check

        check(request)

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes an export into an empty directory."""
        require(NAME, "jax2onnx", "onnx", "onnxruntime")
        from estimator_exporters.onnx.write import write

        write(request, Path(directory))

    def load(self, directory: Path) -> LoadedExport:
        """Loads an export."""
        require(NAME, "onnxruntime")
        from estimator_exporters.onnx.load import load

        return load(Path(directory))

    def recognizes(self, directory: Path) -> bool:
        """Returns whether the manifest names this format."""
        return has_manifest_of(Path(directory), NAME)
