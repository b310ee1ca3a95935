"""Writing an `onnx` export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, SignatureSpec
from estimator_exporters.bundle.write import finish
from estimator_exporters.onnx.convert import check_operations, converted, traced

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
    for signature in request.signatures.values():
        _check(signature, request)
    programs = {name: traced(signature, request.variables) for name, signature in request.signatures.items()}
    for name, program in programs.items():
        check_operations(name, program)
    (directory / "graphs").mkdir()
    written: dict[Any, str] = {}
    files: dict[str, str] = {}
    for name, signature in request.signatures.items():
        if signature.function not in written:
            written[signature.function] = f"graphs/{len(written)}.onnx"
            model = converted(signature, programs[name])
            (directory / written[signature.function]).write_bytes(model.SerializeToString())
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
