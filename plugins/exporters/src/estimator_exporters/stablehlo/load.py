"""Loads a `stablehlo` export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import safe_open

from estimator_core.errors import ArgumentError, ExportError
from estimator_core.export import Feature
from estimator_exporters.bundle.loaded import Loaded, Signature, features, numpy_dtype
from estimator_exporters.bundle.manifest import file_of, read_manifest
from estimator_exporters.stablehlo.programs import read_program


def load(directory: Path) -> Loaded:
    """Loads an export after verifying every file.

    Raises:
        ExportError: the export is damaged, or needs a newer jax.
    """
    manifest = read_manifest(directory, "stablehlo")
    written_with = str(manifest["provenance"].get("versions", {}).get("jax", "unknown"))
    try:
        with safe_open(file_of(directory, manifest, manifest["variables"]), framework="np") as weights:
            names = weights.keys()  # one after another, so that the host holds only one of them
            variables = {name: jax.block_until_ready(jax.device_put(weights.get_tensor(name))) for name in names}
        programs: dict[str, _Compiled] = {}
        signatures: dict[str, Signature] = {}
        for name, described in manifest["signatures"].items():
            sized: dict[int | None, _Compiled] = {}
            for program in described["program"]:
                path = file_of(directory, manifest, program["path"])
                if path.name not in programs:
                    programs[path.name] = _Compiled(*read_program(path, written_with))
                sized[program["batch"]] = programs[path.name]
            inputs, outputs = features(described["inputs"]), features(described["outputs"])
            run = sized[None] if None in sized else _Padded(inputs, outputs, sized)
            signatures[name] = Signature(
                name=name,
                method=described["method"],
                inputs=inputs,
                outputs=outputs,
                run=_bound(run, variables),
                computed=next(iter(sized.values())).taken,
            )
    except ExportError:
        raise
    except Exception as error:
        raise ExportError(f"{directory} cannot be read: {error!r}. Export again.") from error
    return Loaded(directory=directory, manifest=manifest, signatures=signatures)


class _Compiled:
    """A program that is compiled once per set of input shapes. It stays compiled when the caches of jax are cleared.

    Args:
        program: the jitted program.
        taken: the dtypes of its inputs. jax would narrow inputs by the settings of this process, not those of the
            writer.
    """

    def __init__(self, program: Any, taken: Mapping[str, str]) -> None:
        self.taken = taken
        self._program = program
        self._by_shapes: dict[Any, Any] = {}

    def __call__(self, variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
        inputs = {name: array.astype(numpy_dtype(self.taken[name]), copy=False) for name, array in arrays.items()}
        shapes = tuple((name, array.shape, array.dtype) for name, array in inputs.items())
        compiled = self._by_shapes.get(shapes)
        if compiled is None:
            compiled = self._by_shapes[shapes] = self._program.lower(variables, inputs).compile()
        return compiled(variables, inputs)


def _bound(run: Any, variables: Mapping[str, Any]) -> Any:
    return lambda arrays: jax.device_get(run(variables, arrays))


@dataclass(frozen=True)
class _Padded:
    """A function of any batch size from programs of fixed sizes. Batches are padded to a size or cut to the largest."""

    inputs: Mapping[str, Feature]
    outputs: Mapping[str, Feature]
    programs: Mapping[Any, Any]

    def __call__(self, variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        batched = [name for name, feature in self.inputs.items() if feature.shape[:1] == (None,)]
        total, largest = len(arrays[batched[0]]), max(self.programs)
        whole = [name for name, feature in self.outputs.items() if feature.shape[:1] != (None,)]
        if whole and total not in self.programs:
            raise ArgumentError(
                f"A batch of {total} rows would be padded or cut, which changes the outputs {whole}: they depend on "
                f"the whole batch. The sizes of this export are {sorted(self.programs)}."
            )
        pieces = [
            self._piece(variables, arrays, batched, start, min(largest, total - start))
            for start in range(0, total, largest)
        ]
        return {
            name: np.concatenate([piece[name] for piece in pieces]) if feature.shape[:1] == (None,) else pieces[0][name]
            for name, feature in self.outputs.items()
        }

    def _piece(
        self, variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray], batched: list[str], start: int, size: int
    ) -> dict[str, np.ndarray]:
        padded = min(known for known in self.programs if known >= size)
        rows = np.minimum(np.arange(padded), size - 1) + start  # the last row is repeated
        piece = {name: value[rows] if name in batched else value for name, value in arrays.items()}
        outputs = jax.device_get(self.programs[padded](variables, piece))
        return {
            name: outputs[name][:size] if feature.shape[:1] == (None,) else outputs[name]
            for name, feature in self.outputs.items()
        }
