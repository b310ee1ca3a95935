"""Writes exports as MLflow models, into a directory or to a run of the tracking store."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_exporters.mlflow_flavor.loader import DEFAULT_SIGNATURE
from estimator_exporters.mlflow_flavor.schema import model_signature
from estimator_exporters.scoring.plan import signature_of

_LOADER = "estimator_exporters.mlflow_flavor.loader"
_EXTRAS = {"onnx": "onnx", "saved_model": "saved-model"}


def save_mlflow_model(export: str, path: str, *, signature: str = DEFAULT_SIGNATURE) -> None:
    """Writes an export as an MLflow model, for `mlflow models serve -m PATH` and `mlflow.pyfunc.load_model`.

    Args:
        export: the path or URL of an export. In a directory of several exports, the newest is used.
        path: a directory that does not exist yet.
        signature: the signature that the model answers with.

    Raises:
        ArgumentError: MLflow is not installed, or the signature does not exist.
        ExportError: the export cannot be read.
    """
    arguments = _arguments(export, signature)
    from mlflow import pyfunc  # pyright: ignore[reportMissingImports]

    pyfunc.save_model(path, **arguments)


def log_mlflow_model(
    export: str, name: str = "model", *, signature: str = DEFAULT_SIGNATURE, registered_as: str | None = None
) -> Any:
    """Logs an export to the active MLflow run, or to a new one.

    Args:
        export: the path or URL of an export. In a directory of several exports, the newest is used.
        name: the name of the model in the run.
        signature: the signature that the model answers with.
        registered_as: the name in the model registry. None: the model is not registered.

    Returns:
        The `ModelInfo` of MLflow. `mlflow.pyfunc.load_model(info.model_uri)` loads the model.

    Raises:
        ArgumentError: MLflow is not installed, or the signature does not exist.
        ExportError: the export cannot be read.
    """
    arguments = _arguments(export, signature)
    from mlflow import pyfunc  # pyright: ignore[reportMissingImports]

    return pyfunc.log_model(name=name, registered_model_name=registered_as, **arguments)


def _arguments(export: str, signature: str) -> dict[str, Any]:
    if importlib.util.find_spec("mlflow") is None:
        raise ArgumentError("MLflow is not installed. Install it: pip install 'estimator-exporters[mlflow]'")
    loaded: Any = ec.export.load(export)
    found = signature_of(loaded, signature)
    return {
        "loader_module": _LOADER,
        "data_path": str(Path(loaded.directory).absolute()),
        "model_config": {"signature": signature},
        "signature": model_signature(found.inputs),
        "pip_requirements": requirements_of(loaded.manifest),
        "metadata": {"global_step": loaded.manifest["global_step"], "format": loaded.manifest["format"]},
    }


def requirements_of(manifest: Any) -> list[str]:
    """Returns the requirements of a machine that scores: the packages of the format and of host transforms.

    Example:
        >>> facts = {"versions": {"jax": "0.10.2"}, "plugins": []}
        >>> requirements_of({"format": "onnx", "provenance": facts, "files": {}})[1:]
        ['jax==0.10.2']
    """
    from estimator_exporters import __version__

    facts = manifest["provenance"]
    extra = _EXTRAS.get(manifest["format"], "")
    wanted = [f"estimator-exporters[{','.join(filter(None, (extra, 'mlflow')))}]=={__version__}"]
    versions = facts.get("versions", {})
    wanted += [f"{name}=={versions[name]}" for name in ("estimator-core", "jax") if name in versions]
    if any(name.startswith("transforms/") for name in manifest["files"]):
        others = [one for one in facts.get("plugins", []) if one["distribution"] not in ("estimator-exporters",)]
        wanted += [f"{one['distribution']}=={one['version']}" for one in others]
    return wanted
