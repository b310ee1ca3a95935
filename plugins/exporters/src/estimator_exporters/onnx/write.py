"""Writing an `onnx` export."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
from jax import export as jax_export

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, SignatureSpec

_DTYPES = (
    "float32",
    "float16",
    "int32",
    "int64",
    "int8",
    "int16",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "float64",
)


def write(request: ExportRequest, directory: Path) -> None:
    """Writes one graph for each signature, assets, transforms and the manifest.

    Raises:
        ExportError: what ONNX cannot hold is refused before anything is converted; what the converter refuses, with
            its reason.
    """
    from estimator_exporters.bundle.write import finish

    for signature in request.signatures.values():
        _check(signature, request)
    (directory / "graphs").mkdir()
    written: dict[Any, str] = {}
    programs: dict[str, str] = {}
    for name, signature in request.signatures.items():
        if signature.function not in written:
            written[signature.function] = f"graphs/{len(written)}.onnx"
            _convert(signature, request.variables, directory / written[signature.function])
        programs[name] = written[signature.function]
    finish(request, directory, "onnx", programs)


def _check(signature: SignatureSpec, request: ExportRequest) -> None:
    if request.fixed_batch_sizes is not None:
        raise ExportError(
            "An ONNX graph has one program for all batch sizes, and this model has none. Build the receiver with "
            "default_batch_size=N, or use the format 'stablehlo'."
        )
    for kind, named in (("input", signature.inputs), ("output", signature.outputs)):
        for name, feature in named.items():
            if feature.dtype not in _DTYPES:
                raise ExportError(
                    f"Signature {signature.name!r}: {kind} {name!r} is {feature.dtype}, which onnxruntime does not "
                    "run on a CPU. "
                    "Cast it to float32, or use the format 'stablehlo'."
                )


def _convert(signature: SignatureSpec, variables: Mapping[str, Any], path: Path) -> None:
    import jax2onnx  # pyright: ignore[reportMissingImports]

    from estimator_exporters.onnx.primitives import evaluated

    names, outputs = list(signature.inputs), list(signature.outputs)

    def positional(*arrays: Any) -> tuple[Any, ...]:
        found = signature.function(variables, dict(zip(names, arrays, strict=True)))
        return tuple(found[name] for name in outputs)

    inputs = _abstract(signature)
    noisy = logging.getLogger("onnx_ir.serde")  # one line for each value whose type the converter leaves out
    level = noisy.level
    noisy.setLevel(logging.ERROR)
    try:
        # Traced here and not in the converter: while it traces, it replaces functions of jax and Flax by its own, which
        # know the arguments of some versions of those libraries only.
        traced = jax.make_jaxpr(positional)(*inputs)
        jax2onnx.to_onnx(
            lambda *arrays: tuple(evaluated(traced, arrays)),
            inputs,
            model_name=signature.name,
            input_names=names,
            output_names=outputs,
            return_mode="file",
            output_path=os.fspath(path),
        )
    except Exception as error:
        raise ExportError(
            f"Signature {signature.name!r} cannot be converted to ONNX: {error!r}. The format 'stablehlo' takes "
            "every jax program."
        ) from error
    finally:
        noisy.setLevel(level)


def _abstract(signature: SignatureSpec) -> list[jax.ShapeDtypeStruct]:
    (batch,) = jax_export.symbolic_shape("B", scope=jax_export.SymbolicScope(["B >= 1"]))
    return [
        jax.ShapeDtypeStruct(tuple(batch if size is None else size for size in feature.shape), feature.dtype)
        for feature in signature.inputs.values()
    ]
