"""Reading an `onnx` export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingImports]

from estimator_core.errors import ExportError
from estimator_exporters.bundle.loaded import Loaded, Signature, features
from estimator_exporters.bundle.manifest import file_of, read_manifest


def load(directory: Path) -> Loaded:
    """Reads an export after verifying every file.

    Raises:
        ExportError: it is damaged, or onnxruntime refuses it.
    """
    manifest = read_manifest(directory, "onnx")
    try:
        signatures = {
            name: Signature(
                name=name,
                method=described["method"],
                inputs=features(described["inputs"]),
                outputs=features(described["outputs"]),
                run=_run(file_of(directory, manifest, described["program"]), list(described["outputs"])),
            )
            for name, described in manifest["signatures"].items()
        }
    except ExportError:
        raise
    except Exception as error:
        raise ExportError(f"{directory} cannot be read by onnxruntime {onnxruntime.__version__}: {error!r}") from error
    return Loaded(directory=directory, manifest=manifest, signatures=signatures)


def session(graph: Path | bytes) -> Any:
    """A graph of a file, or one in memory, ready to run."""
    source = graph if isinstance(graph, bytes) else str(graph)
    options: Any = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # warnings of constants in loops that nothing uses
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _run(path: Path, outputs: list[str]) -> Any:
    ready = session(path)
    taken = {value.name for value in ready.get_inputs()}

    def run(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = ready.run(outputs, {name: value for name, value in arrays.items() if name in taken})
        return dict(zip(outputs, found, strict=True))

    return run
