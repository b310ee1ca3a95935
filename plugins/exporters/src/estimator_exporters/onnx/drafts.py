"""The converted graphs of a request. The check of a request converts it, so the graphs are kept for the export."""

from __future__ import annotations

import re
import weakref
from typing import Any

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, SignatureSpec
from estimator_exporters.onnx.convert import check_operations, converted, traced
from estimator_exporters.onnx.load import session
from estimator_exporters.onnx.old_readers import check_oldest

_LARGEST = 2**31 - 1  # the largest size of a protobuf message in bytes
_LACKS = re.compile(r"Could not find an implementation for (\w+)\(")
#: By the identity of a request, for its lifetime. Requests contain arrays and cannot be compared.
_KNOWN: dict[int, dict[Any, Any]] = {}


def draft(request: ExportRequest, signature: SignatureSpec) -> Any:
    """Returns the `onnx.ModelProto` of a signature of a request.

    Raises:
        ExportError: the converter does not support an operation, or refuses the program for another reason.
    """
    if id(request) not in _KNOWN:
        _KNOWN[id(request)] = {}
        weakref.finalize(request, _KNOWN.pop, id(request), None)
    known = _KNOWN[id(request)]
    if signature.function not in known:
        program = traced(signature, request.variables)
        check_operations(signature.name, program)
        known[signature.function] = converted(signature, program)
        _check_readable(known[signature.function], signature.name)
    return known[signature.function]


def _check_readable(model: Any, name: str) -> None:
    """Refuses a graph with operations that onnxruntime lacks for their dtypes. A reader would report this too late."""
    if model.ByteSize() > _LARGEST:
        return  # it can only be read from files, and the export is read back before it is published
    check_oldest(model, name)
    try:
        session(model.SerializeToString())
    except Exception as error:
        lacks = _LACKS.search(str(error))
        if lacks is None:
            raise ExportError(f"onnxruntime cannot read signature {name!r}: {error}. Use 'stablehlo'.") from error
        raise ExportError(
            f"Signature {name!r} uses {lacks.group(1)} of a dtype that onnxruntime does not run on a CPU. Compute in "
            "float32, or use the format 'stablehlo'."
        ) from error
