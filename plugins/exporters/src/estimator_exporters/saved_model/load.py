"""Loads a `saved_model` export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core.errors import ExportError
from estimator_exporters.bundle.loaded import Loaded, Signature, computed_of, features
from estimator_exporters.bundle.manifest import read_manifest


@dataclass(frozen=True, kw_only=True)
class LoadedSavedModel(Loaded):
    """A SavedModel that was loaded.

    Attributes:
        own_signatures: the signatures for clients of TensorFlow: strings and tf.Examples as inputs, class names as
            outputs.
    """

    own_signatures: Mapping[str, Signature]


def load(directory: Path) -> LoadedSavedModel:
    """Loads an export after verifying every file.

    Raises:
        ExportError: the export is damaged.
    """
    manifest = read_manifest(directory, "saved_model")
    described = manifest["signatures"]
    try:
        module: Any = tf.saved_model.load(str(directory))
        arrays = {name: _arrays(module, name, one) for name, one in described.items()}
        own = {name: _own(module, name, one) for name, one in described.items()}
    except Exception as error:
        raise ExportError(f"{directory} cannot be read by TensorFlow {tf.__version__}: {error!r}") from error
    return LoadedSavedModel(directory=directory, manifest=manifest, signatures=arrays, own_signatures=own)


def _arrays(module: Any, name: str, described: Mapping[str, Any]) -> Signature:
    program = described["program"]
    return Signature(
        name=name,
        method=described["method"],
        inputs=features(described["inputs"]),
        outputs=features(described["outputs"]),
        run=_run(module, program["taken"], program["given"]),
        computed=computed_of(described),
    )


def _own(module: Any, name: str, described: Mapping[str, Any]) -> Signature:
    program = described["program"]
    return Signature(
        name=name,
        method=described["method"],
        inputs=features(program["client"]["inputs"]),
        outputs=features(program["client"]["outputs"]),
        run=_run(module, program["received"], program["shown"]),
    )


def _run(
    module: Any, taken: Mapping[str, str], given: Mapping[str, str]
) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Returns a function of tensors of the graph, by their names in a signature."""
    function = module.prune([module.graph.get_tensor_by_name(tensor) for tensor in taken.values()], dict(given))

    def run(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = function(*(tf.constant(arrays[name]) for name in taken))
        return {name: _text(value.numpy()) for name, value in outputs.items()}

    return run


def _text(array: np.ndarray) -> np.ndarray:
    """Returns strings as str, because TensorFlow has bytes."""
    if array.dtype != object:
        return array
    return np.array([item.decode() for item in array.reshape(-1).tolist()], object).reshape(array.shape)
