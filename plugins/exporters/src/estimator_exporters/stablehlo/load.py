"""Reading a `stablehlo` export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from safetensors.numpy import load_file

from estimator_core.errors import ArgumentError, ExportError
from estimator_core.export import Feature
from estimator_exporters.stablehlo.manifest import read_manifest


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A function of the export: `signature(**arrays)` gives numpy arrays by name."""

    name: str
    inputs: Mapping[str, Feature]
    outputs: Mapping[str, Feature]
    method: str
    run: Any
    variables: Mapping[str, Any]

    def __call__(self, **arrays: Any) -> dict[str, np.ndarray]:
        """Runs the function on one batch.

        Raises:
            ArgumentError: inputs are missing, unknown, or of another shape or dtype.
        """
        return jax.device_get(self.run(self.variables, self._checked(arrays)))

    def _checked(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        missing, unknown = sorted(self.inputs.keys() - arrays.keys()), sorted(arrays.keys() - self.inputs.keys())
        if missing or unknown:
            raise ArgumentError(f"signature {self.name!r}: missing inputs {missing}, unknown inputs {unknown}. It takes {dict(self.inputs)}.")
        return {name: _fit(self.name, name, feature, arrays[name]) for name, feature in self.inputs.items()}


@dataclass(frozen=True, kw_only=True)
class StableHLOExport:
    """A loaded export."""

    signatures: Mapping[str, Signature]
    manifest: Mapping[str, Any]


def load(directory: Path) -> StableHLOExport:
    """Reads an export after verifying every file.

    Raises:
        ExportError: it is damaged, or needs a newer jax.
    """
    manifest = read_manifest(directory)
    variables = {name: jnp.asarray(value) for name, value in load_file(directory / manifest["variables"]).items()}
    signatures: dict[str, Signature] = {}
    for name, described in manifest["signatures"].items():
        try:
            program = jax_export.deserialize(bytearray((directory / described["program"]).read_bytes()))
        except Exception as error:
            written = manifest["provenance"].get("versions", {}).get("jax", "unknown")
            raise ExportError(f"Signature {name!r} of {directory} was written with jax {written} and cannot be read by jax {jax.__version__}: {error}. Use that jax or a newer one.") from error
        signatures[name] = Signature(
            name=name, inputs=_features(described["inputs"]), outputs=_features(described["outputs"]), method=described["method"], run=jax.jit(program.call), variables=variables
        )
    return StableHLOExport(signatures=signatures, manifest=manifest)


def _features(named: Mapping[str, Any]) -> dict[str, Feature]:
    return {name: Feature(tuple(value["shape"]), value["dtype"]) for name, value in named.items()}


def _fit(signature: str, name: str, feature: Feature, value: Any) -> np.ndarray:
    array = np.asarray(value)
    fits = array.ndim == len(feature.shape) and all(size is None or size == given for size, given in zip(feature.shape, array.shape, strict=True))
    if not fits or (feature.shape[:1] == (None,) and array.shape[0] == 0):
        raise ArgumentError(f"signature {signature!r}: input {name!r} must have shape {feature.shape}, given {array.shape}.")
    wanted = jnp.dtype(feature.dtype)
    if array.dtype != wanted:
        if not np.can_cast(array.dtype, wanted, "same_kind"):
            raise ArgumentError(f"signature {signature!r}: input {name!r} must be {feature.dtype}, given {array.dtype}.")
        array = array.astype(wanted)
    return array
