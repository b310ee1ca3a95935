"""Writing a `stablehlo` export."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import export as jax_export
from safetensors.numpy import save_file

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_exporters.stablehlo.manifest import FORMAT_VERSION, MANIFEST, WEIGHTS, checksum, seal

PLATFORMS = ("cpu", "cuda", "tpu")


def write(request: ExportRequest, directory: Path) -> None:
    """Writes programs, weights, assets and the manifest.

    Raises:
        ExportError: a signature cannot be lowered; says where in the user's code.
    """
    programs = {name: f"programs/{name}.jaxexport" for name in request.signatures}
    (directory / "programs").mkdir()
    for name, signature in request.signatures.items():
        (directory / programs[name]).write_bytes(lower(signature, request.variables).serialize())
    save_file(dict(request.variables), directory / WEIGHTS)
    for name, source in request.assets.items():
        target = directory / "assets" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    files = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    content: dict[str, Any] = {
        "format": "stablehlo",
        "format_version": FORMAT_VERSION,
        "global_step": request.global_step,
        "platforms": list(PLATFORMS),
        "signatures": {name: _described(signature, programs[name]) for name, signature in request.signatures.items()},
        "variables": WEIGHTS,
        "files": {name: checksum(directory / name) for name in files},
        "provenance": dict(request.provenance),
    }
    (directory / MANIFEST).write_text(json.dumps({**content, "seal": seal(content)}, indent=1) + "\n")


def lower(signature: SignatureSpec, variables: Mapping[str, Any]) -> jax_export.Exported:
    """One signature as a program for all platforms, for any batch size from 1 on."""
    scope = jax_export.SymbolicScope(["b >= 1"])
    inputs = {name: _symbolic(feature, scope) for name, feature in signature.inputs.items()}
    abstract = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in variables.items()}
    try:
        return jax_export.export(jax.jit(signature.function), platforms=PLATFORMS)(abstract, inputs)
    except Exception as error:
        raise ExportError(f"Signature {signature.name!r} cannot be exported for any batch size: {error}\nBuild the receiver with default_batch_size=N to export it for one size.") from error


def _symbolic(feature: Feature, scope: jax_export.SymbolicScope) -> jax.ShapeDtypeStruct:
    text = ", ".join("b" if size is None else str(size) for size in feature.shape)
    return jax.ShapeDtypeStruct(jax_export.symbolic_shape(text, scope=scope), jnp.dtype(feature.dtype))


def _described(signature: SignatureSpec, program: str) -> dict[str, Any]:
    def features(named: Mapping[str, Feature]) -> dict[str, Any]:
        return {name: {"shape": list(feature.shape), "dtype": feature.dtype} for name, feature in named.items()}

    return {"program": program, "method": signature.method, "inputs": features(signature.inputs), "outputs": features(signature.outputs)}
