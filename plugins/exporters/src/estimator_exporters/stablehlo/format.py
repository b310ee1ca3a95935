"""The `stablehlo` export format as a component."""

from __future__ import annotations

from pathlib import Path

from estimator_core.export import ExportRequest, LoadedExport
from estimator_exporters.bundle.manifest import has_manifest_of

NAME = "stablehlo"


class StableHLOFormat:
    """Programs from `jax.export` for cpu, cuda and tpu, weights as safetensors, a manifest with checksums."""

    name = NAME

    def check(self, request: ExportRequest) -> None:
        """Refuses programs that cannot be lowered, or that call into the Python process."""
        from estimator_exporters.stablehlo.write import check

        check(request)

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes an export into an empty directory."""
        from estimator_exporters.stablehlo.write import write

        write(request, directory)

    def load(self, directory: Path) -> LoadedExport:
        """Loads an export."""
        from estimator_exporters.stablehlo.load import load

        return load(Path(directory))

    def recognizes(self, directory: Path) -> bool:
        """Returns whether the manifest names this format."""
        return has_manifest_of(Path(directory), NAME)
