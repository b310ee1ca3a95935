"""Inference requests and answers of the Open Inference Protocol over gRPC."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from estimator_exporters.bundle.object_arrays import objects
from estimator_exporters.serving.calls import Arrays
from estimator_exporters.serving.datatypes import NUMPY, datatype, from_bytes, to_bytes
from estimator_exporters.serving.grpc_messages import MESSAGES
from estimator_exporters.serving.refusals import BadRequestError, TooLargeError

_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def inputs_of(request: Any, values: int) -> Arrays:
    """Returns the arrays of a `ModelInferRequest`.

    Raises:
        BadRequestError: the request does not follow the protocol. The message names the fault.
        TooLargeError: a tensor has more than `values` strings.
    """
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise BadRequestError(f"there are {len(request.inputs)} inputs and {len(raw)} raw_input_contents")
    found: dict[str, np.ndarray] = {}
    for number, tensor in enumerate(request.inputs):
        what, shape = f"input {tensor.name!r}", tuple(tensor.shape)
        if tensor.name in found:
            raise BadRequestError(f"{what} is given twice")
        if tensor.datatype not in NUMPY:
            raise BadRequestError(f"{what}: datatype must be one of {', '.join(NUMPY)}")
        if len(shape) > 32 or any(not 0 <= size < 2**31 for size in shape):
            raise BadRequestError(f"{what}: shape must hold sizes of at least 0")
        if "shared_memory_region" in tensor.parameters:
            raise BadRequestError(f"{what}: shared memory is not supported")
        if tensor.datatype == "BYTES" and math.prod(shape) > values:
            raise TooLargeError(f"{what}: it has more than {values} strings")
        if raw and tensor.contents.ByteSize():
            raise BadRequestError(f"{what}: it has both contents and raw_input_contents")
        if raw:
            found[tensor.name] = from_bytes(tensor.datatype, memoryview(raw[number]), shape, what)
        else:
            found[tensor.name] = _contents(tensor, shape, what)
    return found


def response_of(request: Any, name: str, version: str, outputs: Arrays) -> Any:
    """Returns the `ModelInferResponse`, with raw contents.

    Raises:
        BadRequestError: the request names an output that does not exist.
    """
    asked = [tensor.name for tensor in request.outputs] or list(outputs)
    response = MESSAGES["ModelInferResponse"](model_name=name, model_version=version, id=request.id)
    for key in asked:
        if key not in outputs:
            raise BadRequestError(f"there is no output {key!r}; the outputs are {sorted(outputs)}")
        array = outputs[key]
        response.outputs.add(name=key, datatype=datatype(array.dtype), shape=array.shape)
        response.raw_output_contents.append(to_bytes(array))
    return response


def _contents(tensor: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    field = _CONTENTS.get(tensor.datatype)
    if field is None:
        raise BadRequestError(f"{what}: {tensor.datatype} has no contents; send it in raw_input_contents")
    values = list(getattr(tensor.contents, field))
    if len(values) != math.prod(shape):
        raise BadRequestError(
            f"{what}: shape {list(shape)} needs {math.prod(shape)} values, but {field} has {len(values)}"
        )
    if tensor.datatype == "BYTES":
        return objects(values).reshape(shape)
    try:
        return np.array(values, NUMPY[tensor.datatype]).reshape(shape)
    except OverflowError as error:
        raise BadRequestError(f"{what}: a value is outside the range of {tensor.datatype}") from error
