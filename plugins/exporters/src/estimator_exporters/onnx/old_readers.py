"""The operators that the oldest supported onnxruntime lacks. The table is from tests of each operator and dtype."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx  # pyright: ignore[reportMissingImports]

from estimator_core.errors import ExportError

OLDEST = "1.20"
_NARROW = ("int8", "uint8", "int16", "uint16", "uint32", "uint64")
_COMPUTE = ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
#: The dtypes by operator for which onnxruntime 1.20 has no CPU kernel.
_LACKS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_COMPUTE, _NARROW),
    "BitShift": ("uint16",),
    "Cos": ("float64",),
    "Max": ("int8", "uint8"),
    "Min": ("int8", "uint8"),
    "Neg": ("int16",),
    "TopK": ("int8", "uint8", "int16"),
    "Where": ("int8", "uint32"),
}


def check_oldest(model: Any, name: str) -> None:
    """Refuses a graph that the oldest supported reader cannot run, even if the installed one can.

    Args:
        model: an `onnx.ModelProto`.
        name: the name of the signature.

    Raises:
        ExportError: the oldest reader lacks an operator for a dtype. The message names both.
    """
    for operator, dtype in _used(onnx.shape_inference.infer_shapes(model).graph, {}):
        if dtype in _LACKS[operator]:
            raise ExportError(
                f"Signature {name!r} uses {operator} of {dtype}, which onnxruntime {OLDEST} does not run, the oldest "
                "reader of an export. Compute in int32 or float32, or use the format 'stablehlo'."
            )


def _used(graph: Any, outer: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the operators of the table and their dtypes, in a graph and its subgraphs."""
    described = [*graph.input, *graph.output, *graph.value_info]
    dtypes = {**outer, **{one.name: _dtype(one.type.tensor_type.elem_type) for one in described}}
    dtypes |= {one.name: _dtype(one.data_type) for one in graph.initializer}
    for node in graph.node:
        if node.op_type in _LACKS:
            yield node.op_type, dtypes.get(node.input[1 if node.op_type == "Where" else 0], "")
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _used(inner, dtypes)


def _dtype(kind: int) -> str:
    return "" if kind == onnx.TensorProto.UNDEFINED else str(onnx.helper.tensor_dtype_to_np_dtype(kind))
