"""Writes an `onnx` export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx  # pyright: ignore[reportMissingImports]

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, SignatureSpec
from estimator_exporters.bundle.write import described, finish
from estimator_exporters.onnx.drafts import draft
from estimator_exporters.onnx.extensions import library
from estimator_exporters.onnx.load import session
from estimator_exporters.onnx.raw import HostPart, raw_model

_SMALL = 1024  # the size in bytes up to which a tensor stays in its graph
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


def check(request: ExportRequest) -> None:
    """Refuses programs that ONNX cannot represent, before the export is written.

    Raises:
        ExportError: ONNX or the converter refuses it. The message names the signature, operation or host transform.
    """
    for signature in request.signatures.values():
        _check(signature, request)
        part = HostPart.of(request, signature)
        if part is not None and part.needs:
            library()
        draft(request, signature)


def write(request: ExportRequest, directory: Path) -> None:
    """Writes a graph per signature, and a graph with the host part for each signature that has one.

    Raises:
        ExportError: the same conditions as in `check`.
    """
    check(request)
    (directory / "graphs").mkdir()
    written: dict[Any, str] = {}
    files: dict[str, str] = {}
    raw: dict[str, Any] = {}
    for name, signature in request.signatures.items():
        part = HostPart.of(request, signature)
        key = (signature.function, part is None)
        if key not in written:
            written[key] = f"graphs/{len(written)}.onnx"
            model = onnx.ModelProto()
            model.CopyFrom(draft(request, signature))  # shared weights move into a file
            _save(model, directory / written[key], shared=part is not None)
            if part is not None:
                raw |= {written[key]: model}
        files[name] = written[key]
    finish(request, directory, "onnx", files, raw_signatures=_raw(request, directory, files, raw))


def _raw(request: ExportRequest, directory: Path, files: dict[str, str], models: dict[str, Any]) -> dict[str, Any]:
    """Writes the graphs with a host part, and returns their entries in the manifest."""
    found: dict[str, Any] = {}
    for name, signature in request.signatures.items():
        part = HostPart.of(request, signature)
        if part is None:
            continue
        path = f"graphs/raw_{len(found)}.onnx"
        model = raw_model(part, models[files[name]])
        (directory / path).write_bytes(model.SerializeToString())
        _readable(directory / path, signature.name, part.needs)
        found[name] = {
            "program": path,
            "inputs": described(part.receiver),
            "outputs": described(part.shown),
            "unchecked": part.unchecked,
            "needs": part.needs,
        }
    return found


def _save(model: Any, path: Path, *, shared: bool) -> None:
    """Writes a graph. Weights that a second graph shares are stored in a separate file."""
    if shared:
        onnx.convert_model_to_external_data(model, location=f"{path.stem}.weights", size_threshold=_SMALL)
    onnx.save_model(model, str(path))


def _readable(path: Path, name: str, needs: Sequence[str]) -> None:
    """Checks that onnxruntime reads a graph.

    Raises:
        ExportError: onnxruntime refuses the graph.
    """
    try:
        session(path, needs)
    except Exception as error:
        raise ExportError(
            f"Signature {name!r}: onnxruntime does not read the graph with the host part: {error}. Use the format "
            "'stablehlo'."
        ) from error


def _check(signature: SignatureSpec, request: ExportRequest) -> None:
    if request.fixed_batch_sizes is not None:
        raise ExportError(
            "An ONNX graph has one program for all batch sizes, and this model has none. Build the receiver with "
            "default_batch_size=N, or use the format 'stablehlo'."
        )
    shared = sorted(signature.inputs.keys() & signature.outputs.keys())
    if shared:
        raise ExportError(
            f"Signature {signature.name!r}: {', '.join(map(repr, shared))} is an input and an output, but in an ONNX "
            "graph each name must be unique. Rename the output, or use the format 'stablehlo'."
        )
    for kind, named in (("input", signature.inputs), ("output", signature.outputs)):
        for name, feature in named.items():
            if feature.dtype not in _DTYPES:
                raise ExportError(
                    f"Signature {signature.name!r}: {kind} {name!r} is {feature.dtype}, which onnxruntime does not "
                    "run on a CPU. "
                    "Cast it to float32, or use the format 'stablehlo'."
                )
