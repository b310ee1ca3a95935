"""Writing an `onnx` export."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from jax import export as jax_export
from jax.extend import core

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, SignatureSpec
from estimator_exporters.onnx.primitives import evaluated, operations

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
    inputs = {name: _abstract(signature) for name, signature in request.signatures.items()}
    programs = {
        name: _traced(signature, request.variables, inputs[name]) for name, signature in request.signatures.items()
    }
    for name, program in programs.items():
        _check_operations(name, program)
    (directory / "graphs").mkdir()
    written: dict[Any, str] = {}
    files: dict[str, str] = {}
    for name, signature in request.signatures.items():
        if signature.function not in written:
            written[signature.function] = f"graphs/{len(written)}.onnx"
            _convert(signature, programs[name], inputs[name], directory / written[signature.function])
        files[name] = written[signature.function]
    finish(request, directory, "onnx", files)


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


def _traced(
    signature: SignatureSpec, variables: Mapping[str, Any], inputs: Sequence[jax.ShapeDtypeStruct]
) -> core.ClosedJaxpr:
    """The program of a signature for any batch size.

    It is traced here and not by the converter, which replaces functions of jax and Flax by its own while it traces, and
    knows the arguments of some versions of those libraries only.
    """
    outputs = list(signature.outputs)

    def positional(*arrays: Any) -> tuple[Any, ...]:
        found = signature.function(variables, dict(zip(signature.inputs, arrays, strict=True)))
        return tuple(found[name] for name in outputs)

    return jax.make_jaxpr(positional)(*inputs)


def _check_operations(name: str, program: core.ClosedJaxpr) -> None:
    from jax2onnx.plugins.plugin_system import (  # pyright: ignore[reportMissingImports]
        PLUGIN_REGISTRY,
        import_all_plugins,
    )

    with _quiet():
        import_all_plugins()
    unknown = sorted(operations(program.jaxpr) - PLUGIN_REGISTRY.keys())
    if unknown:
        raise ExportError(
            f"Signature {name!r} uses {', '.join(unknown)}, which jax2onnx does not convert. Write the model without, "
            "or use the format 'stablehlo'."
        )


def _convert(
    signature: SignatureSpec, program: core.ClosedJaxpr, inputs: Sequence[jax.ShapeDtypeStruct], path: Path
) -> None:
    import jax2onnx  # pyright: ignore[reportMissingImports]

    try:
        with _quiet():
            jax2onnx.to_onnx(
                lambda *arrays: tuple(evaluated(program, arrays)),
                list(inputs),
                model_name=signature.name,
                input_names=list(signature.inputs),
                output_names=list(signature.outputs),
                return_mode="file",
                output_path=os.fspath(path),
            )
    except Exception as error:
        raise ExportError(
            f"Signature {signature.name!r} cannot be converted to ONNX: {error!r}. The format 'stablehlo' takes "
            "every jax program."
        ) from error


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Leaves out what the converter logs about plugins and values that it passes over; its errors are raised."""
    loggers = [logging.getLogger(name) for name in ("jax2onnx", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _abstract(signature: SignatureSpec) -> list[jax.ShapeDtypeStruct]:
    (batch,) = jax_export.symbolic_shape("B", scope=jax_export.SymbolicScope(["B >= 1"]))
    return [
        jax.ShapeDtypeStruct(tuple(batch if size is None else size for size in feature.shape), feature.dtype)
        for feature in signature.inputs.values()
    ]
