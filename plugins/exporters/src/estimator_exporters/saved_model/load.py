"""Reading a `saved_model` export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core.errors import ExportError
from estimator_exporters.bundle.loaded import Loaded, Signature, features
from estimator_exporters.bundle.manifest import read_manifest


def load(directory: Path) -> Loaded:
    """Reads an export after verifying every file.

    Raises:
        ExportError: it is damaged.
    """
    manifest = read_manifest(directory, "saved_model")
    try:
        module = tf.saved_model.load(str(directory))
        signatures = {
            name: Signature(
                name=name,
                method=described["method"],
                inputs=features(described["inputs"]),
                outputs=features(described["outputs"]),
                run=_run(module, name),
            )
            for name, described in manifest["signatures"].items()
        }
    except Exception as error:
        raise ExportError(f"{directory} cannot be read by TensorFlow {tf.__version__}: {error!r}") from error
    return Loaded(directory=directory, manifest=manifest, signatures=signatures)


def _run(module: Any, name: str) -> Any:
    function = module.signatures[name]

    def run(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        assert module is not None  # its variables live as long as it does
        outputs = function(**{key: tf.constant(value) for key, value in arrays.items()})
        return {key: value.numpy() for key, value in outputs.items()}

    return run
