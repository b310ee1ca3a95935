"""Loads an `onnx` export."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingImports]

from estimator_core.errors import ExportError
from estimator_exporters.bundle.loaded import Loaded, Signature, computed_of, features
from estimator_exporters.bundle.manifest import file_of, read_manifest
from estimator_exporters.onnx.extensions import library
from estimator_exporters.onnx.hashes import PACKAGE


@dataclass(frozen=True, kw_only=True)
class LoadedOnnx(Loaded):
    """An ONNX export that was loaded."""

    @property
    def own_signatures(self) -> Mapping[str, Signature]:
        """Returns the signatures for clients of onnxruntime: texts as inputs, class names as outputs.

        The first call of a signature opens its graph.
        """
        found = dict(self.signatures)
        for name, described in self.manifest.get("raw_signatures", {}).items():
            outputs = features(described["outputs"])
            path = file_of(self.directory, self.manifest, described["program"])
            found[name] = Signature(
                name=name,
                method=self.signatures[name].method,
                inputs=features(described["inputs"]),
                outputs=outputs,
                run=_opened(path, list(outputs), described.get("needs", ())),
            )
        return found


def load(directory: Path) -> LoadedOnnx:
    """Loads an export after verifying every file.

    Raises:
        ExportError: the export is damaged, or onnxruntime refuses it.
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
                computed=computed_of(described),
            )
            for name, described in manifest["signatures"].items()
        }
    except ExportError:
        raise
    except Exception as error:
        raise ExportError(f"{directory} cannot be read by onnxruntime {onnxruntime.__version__}: {error!r}") from error
    return LoadedOnnx(directory=directory, manifest=manifest, signatures=signatures)


def session(graph: Path | bytes, needs: Sequence[str] = ()) -> Any:
    """Returns a session that is ready to run a graph.

    Args:
        graph: the path or the content of the file.
        needs: the packages with operators of the graph.

    Raises:
        ExportError: one of these packages is not installed.
    """
    source = graph if isinstance(graph, bytes) else str(graph)
    options: Any = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # no warnings about unused constants in loops
    if PACKAGE in needs:
        options.register_custom_ops_library(library())
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _opened(path: Path, outputs: list[str], needs: Sequence[str]) -> Any:
    """Returns a function of the inputs that clients send. It decodes text, because onnxruntime accepts only str."""
    ready = functools.cache(lambda: _run(path, outputs, needs))
    return lambda arrays: ready()({name: _decoded(array) for name, array in arrays.items()})


def _decoded(array: np.ndarray) -> np.ndarray:
    if array.dtype != object:
        return array
    texts = [item.decode() if isinstance(item, bytes) else item for item in array.reshape(-1).tolist()]
    return np.array(texts, object).reshape(array.shape)


def _run(path: Path, outputs: list[str], needs: Sequence[str] = ()) -> Any:
    ready = session(path, needs)
    taken = {value.name for value in ready.get_inputs()}

    def run(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = ready.run(outputs, {name: value for name, value in arrays.items() if name in taken})
        return dict(zip(outputs, found, strict=True))

    return run
