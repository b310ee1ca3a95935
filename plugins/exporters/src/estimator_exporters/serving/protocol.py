"""Requests and responses of the Open Inference Protocol, version 2, with the binary tensor extension.

Source: kserve.github.io, "Open Inference Protocol". The extension follows `extension_binary_data.md` of Triton.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_exporters.serving.datatypes import NUMPY, datatype, from_bytes, from_json, json_values, to_bytes
from estimator_exporters.serving.json_text import read_json
from estimator_exporters.serving.refusals import BadRequestError, TooLargeError

HEADER_LENGTH = "inference-header-content-length"
_MAX_RANK = 32
_STRING = 64  # bytes of memory for a Python bytes object and its place in an array


@dataclass(frozen=True, kw_only=True)
class InferRequest:
    """One inference request.

    Attributes:
        id: the identifier that the client sent, which the response repeats. None: not sent.
        inputs: the inputs, as arrays by name.
        outputs: the requested outputs, each with whether it is sent in binary. None: all outputs.
        binary: whether outputs are sent in binary if the request does not decide it for each.
    """

    id: str | None
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, bool] | None
    binary: bool


def parse_request(
    body: bytes | bytearray,
    header_length: str | None,
    *,
    values: int = 2**23,
    charge: Callable[[int], None] = lambda count: None,
) -> InferRequest:
    """Returns the request that a body contains.

    Args:
        body: JSON, or JSON followed by the bytes of tensors.
        header_length: the header with the length of the JSON in bytes. None: the whole body is JSON.
        values: the largest number of values in the JSON, and of strings in a binary tensor.
        charge: called with the bytes of memory that decoding needs.

    Raises:
        BadRequestError: the request does not follow the protocol. The message names the fault.
        TooLargeError: there are too many values.
    """
    size = len(body) if header_length is None else _length(header_length, len(body))
    content = read_json(memoryview(body)[:size], values=values, charge=charge)
    if not isinstance(content, dict):
        raise BadRequestError("the request must be a JSON object")
    binary = memoryview(body)[size:]
    inputs: dict[str, np.ndarray] = {}
    for tensor in _list(content, "inputs"):
        name, array, used = _input(tensor, binary, values, charge)
        if name in inputs:
            raise BadRequestError(f"input {name!r} is given twice")
        inputs[name] = array
        binary = binary[used:]
    if len(binary):
        raise BadRequestError(f"{len(binary)} bytes after the last binary input belong to no input")
    request_id = content.get("id")
    if request_id is not None and not isinstance(request_id, str):
        raise BadRequestError("id must be a string")
    by_default = _flag(_parameters(content), "binary_data_output")
    asked = content.get("outputs")
    outputs = None if asked is None else dict(_output(tensor, by_default) for tensor in _list(content, "outputs"))
    return InferRequest(id=request_id, inputs=inputs, outputs=outputs or None, binary=by_default)


def build_response(
    request: InferRequest, model: str, version: str, results: Mapping[str, np.ndarray]
) -> tuple[bytes, dict[str, str]]:
    """Returns the body and the headers of a response.

    Raises:
        BadRequestError: a requested output does not exist, or JSON cannot represent it.
    """
    asked = dict.fromkeys(results, request.binary) if request.outputs is None else request.outputs
    described: list[str] = []
    chunks: list[bytes] = []
    for name, binary in asked.items():
        if name not in results:
            raise BadRequestError(f"there is no output {name!r}; the outputs are {sorted(results)}")
        array = results[name]
        tensor: dict[str, Any] = {"name": name, "datatype": datatype(array.dtype), "shape": list(array.shape)}
        if binary:
            chunks.append(to_bytes(array))
            tensor["parameters"] = {"binary_data_size": len(chunks[-1])}
            described.append(_dumps(tensor))
        else:
            described.append(f'{_dumps(tensor)[:-1]},"data":[{json_values(array, f"output {name!r}")}]}}')
    content = {"model_name": model, "model_version": version}
    if request.id is not None:
        content["id"] = request.id
    header = f'{_dumps(content)[:-1]},"outputs":[{",".join(described)}]}}'.encode()
    if not chunks:
        return header, {"content-type": "application/json"}
    headers = {"content-type": "application/octet-stream", HEADER_LENGTH: str(len(header))}
    return b"".join([header, *chunks]), headers


_dumps = json.JSONEncoder(separators=(",", ":")).encode


def _input(tensor: Any, binary: memoryview, values: int, charge: Callable[[int], None]) -> tuple[str, np.ndarray, int]:
    name, kind, shape = _tensor(tensor)
    what = f"input {name!r}"
    parameters = _parameters(tensor)
    if "shared_memory_region" in parameters:
        raise BadRequestError(f"{what}: shared memory is not supported")
    if "binary_data_size" not in parameters:
        if "data" not in tensor:
            raise BadRequestError(f"{what}: it has neither data nor binary_data_size")
        return name, from_json(kind, tensor.pop("data"), shape, what), 0
    size = parameters["binary_data_size"]
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise BadRequestError(f"{what}: binary_data_size must be an integer of at least 0")
    if "data" in tensor:
        raise BadRequestError(f"{what}: it has both data and binary_data_size")
    if size > len(binary):
        raise BadRequestError(f"{what}: binary_data_size is {size}, but {len(binary)} bytes are left")
    if kind == "BYTES":
        count = size // 4  # each string has a length prefix of 4 bytes; from_bytes refuses a shape with more strings
        if count > values and math.prod(shape) > values:
            raise TooLargeError(f"{what}: it has more than {values} strings")
        charge(_STRING * min(count, math.prod(shape)) + size)
    return name, from_bytes(kind, binary[:size], shape, what), size


def _tensor(tensor: Any) -> tuple[str, str, tuple[int, ...]]:
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise BadRequestError("an input must be an object with a name")
    name, kind, shape = tensor["name"], tensor.get("datatype"), tensor.get("shape", "")
    if not isinstance(kind, str) or kind not in NUMPY:
        raise BadRequestError(f"input {name!r}: datatype must be one of {', '.join(NUMPY)}")
    sizes = isinstance(shape, list) and len(shape) <= _MAX_RANK
    if not sizes or not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        raise BadRequestError(f"input {name!r}: shape must be a list of integers of at least 0")
    return name, kind, tuple(shape)


def _output(tensor: Any, by_default: bool) -> tuple[str, bool]:
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise BadRequestError("an output must be an object with a name")
    parameters = _parameters(tensor)
    for unsupported in ("classification", "shared_memory_region"):
        if unsupported in parameters:
            raise BadRequestError(f"output {tensor['name']!r}: {unsupported} is not supported")
    return tensor["name"], _flag(parameters, "binary_data") if "binary_data" in parameters else by_default


def _length(header: str, total: int) -> int:
    if not header.isascii() or not header.isdigit() or len(header) > 18 or int(header) > total:
        raise BadRequestError(f"{HEADER_LENGTH} must be a number up to the length of the body, {total}")
    return int(header)


def _list(content: Mapping[str, Any], key: str) -> list[Any]:
    found = content.get(key)
    if not isinstance(found, list):
        raise BadRequestError(f"{key} must be a list")
    return found


def _parameters(content: Mapping[str, Any]) -> Mapping[str, Any]:
    found = content.get("parameters", {})
    if not isinstance(found, dict):
        raise BadRequestError("parameters must be an object")
    return found


def _flag(parameters: Mapping[str, Any], name: str) -> bool:
    found = parameters.get(name, False)
    if not isinstance(found, bool):
        raise BadRequestError(f"{name} must be true or false")
    return found
