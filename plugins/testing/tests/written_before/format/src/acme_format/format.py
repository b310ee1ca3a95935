"""An export format: one program a signature, weights and manifest in files of their own, checksums over all."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export

from estimator_core.errors import ArgumentError, ExportError
from estimator_core.export.contract import ExportRequest, SignatureSpec
from estimator_core.export.features import Feature

_MANIFEST, _WEIGHTS = "acme_format.json", "weights.npz"


@dataclass(frozen=True)
class Signature:
    """One program of a loaded export."""

    inputs: Mapping[str, Feature]
    outputs: Mapping[str, Feature]
    program: Any
    variables: Mapping[str, np.ndarray]

    def __call__(self, **arrays: Any) -> dict[str, np.ndarray]:
        """Outputs by name."""
        if wrong := set(arrays) ^ set(self.inputs):
            raise ArgumentError(f"inputs are {sorted(self.inputs)}; missing or unknown: {sorted(wrong)}")
        given = {name: np.asarray(arrays[name], feature.dtype) for name, feature in self.inputs.items()}
        for name, feature in self.inputs.items():
            if given[name].shape[1:] != tuple(feature.shape[1:]):
                raise ArgumentError(f"input {name!r} has shape {given[name].shape}; expected {feature.shape}")
        return {name: np.asarray(value) for name, value in self.program.call(self.variables, given).items()}


@dataclass(frozen=True)
class Loaded:
    """An export that was read back."""

    signatures: Mapping[str, Signature]
    manifest: Mapping[str, Any]


class AcmeFormatFormat:
    """Writes and reads exports that need jax and numpy only."""

    name = "acme_format"

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes into an empty directory."""
        np.savez(directory / _WEIGHTS, **request.variables)
        for name, signature in request.signatures.items():
            (directory / f"{name}.program").write_bytes(_program(signature, request.variables))
        for name, path in request.assets.items():
            target = directory / "assets" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        manifest = {
            "signatures": {
                name: {"inputs": _to_json(signature.inputs), "outputs": _to_json(signature.outputs)}
                for name, signature in request.signatures.items()
            },
            "global_step": request.global_step,
            "provenance": dict(request.provenance),
            "sha256": {path.relative_to(directory).as_posix(): _sha256(path) for path in _files(directory)},
        }
        (directory / _MANIFEST).write_text(json.dumps(manifest, indent=1))

    def recognizes(self, directory: Path) -> bool:
        """Whether the manifest of this format is there."""
        return (directory / _MANIFEST).is_file()

    def load(self, directory: Path) -> Loaded:
        """Reads an export whose checksums are right."""
        try:
            manifest = json.loads((directory / _MANIFEST).read_text())
            damaged = [name for name, digest in manifest["sha256"].items() if _sha256(directory / name) != digest]
        except (OSError, ValueError, KeyError) as error:
            raise ExportError(f"{directory} is no complete export: {error!r}") from error
        if damaged:
            raise ExportError(f"{directory}: these files are damaged: {', '.join(damaged)}")
        with np.load(directory / _WEIGHTS) as weights:
            variables = dict(weights)
        signatures = {
            name: Signature(
                inputs=_from_json(form["inputs"]),
                outputs=_from_json(form["outputs"]),
                program=export.deserialize(bytearray((directory / f"{name}.program").read_bytes())),
                variables=variables,
            )
            for name, form in manifest["signatures"].items()
        }
        return Loaded(signatures=signatures, manifest=manifest)


def _program(signature: SignatureSpec, variables: Mapping[str, np.ndarray]) -> bytes:
    (batch,) = export.symbolic_shape("batch", constraints=["batch >= 1"])
    arguments = {
        name: jax.ShapeDtypeStruct(tuple(batch if size is None else size for size in feature.shape), feature.dtype)
        for name, feature in signature.inputs.items()
    }
    weights = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in variables.items()}
    return bytes(export.export(jax.jit(signature.function))(weights, arguments).serialize())


def _to_json(features: Mapping[str, Feature]) -> dict[str, Any]:
    return {name: [list(feature.shape), feature.dtype] for name, feature in features.items()}


def _from_json(forms: Mapping[str, Any]) -> dict[str, Feature]:
    return {name: Feature(tuple(shape), dtype) for name, (shape, dtype) in forms.items()}


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
