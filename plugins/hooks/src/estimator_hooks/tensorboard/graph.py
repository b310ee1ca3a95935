"""The model's variables for TensorBoard's GRAPHS page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core.hooks import Hook, Run

#: The numbers of dtypes in TensorFlow.
_DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10} | {
    "bfloat16": 14,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}


class GraphHook(Hook):
    """Draws the variables of the model, with shapes and dtypes, in blocks that follow their paths.

    Each block can be opened. Edges connect variables to their block. The computation between blocks is not drawn,
    because XLA fuses it. To see the program itself, use `ProfilerHook`.

    Example:
        >>> GraphHook().next_step(0) is None
        True
    """

    def next_step(self, step: int) -> int | None:
        """Returns None, because the graph is drawn before the first step."""
        return None

    def after_create(self, run: Run) -> None:
        """Writes the graph of a fresh run. A resumed run has it already."""
        if run.step:
            return
        from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf

        graph = graph_of(run.state.variables, run.state.model_state)
        run.summaries.event(Event(graph_def=graph.SerializeToString()), run.step)


def graph_of(variables: Mapping[str, Any], model_state: Mapping[str, Any]) -> Any:
    """Returns a GraphDef with a node for each variable, and one for each block that contains variables.

    Args:
        variables: arrays, or anything with shape and dtype, by path.
        model_state: arrays, or anything with shape and dtype, by path: the variables that are not trained.

    Example:
        >>> graph = graph_of({"dense/kernel": np.zeros((2, 3), np.float32), "dense/bias": np.zeros(3, np.float32)}, {})
        >>> [node.name for node in graph.node]
        ['dense/kernel', 'dense/bias', 'dense/block']
        >>> list(graph.node[-1].input)
        ['dense/kernel', 'dense/bias']
    """
    from tensorboardX.proto.graph_pb2 import GraphDef  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.node_def_pb2 import NodeDef  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.versions_pb2 import VersionDef  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf

    nodes: list[Any] = []
    blocks: dict[str, list[str]] = {}
    for op, arrays in (("Variable", variables), ("State", model_state)):
        for path, array in arrays.items():
            name = path.replace(" ", "_")
            nodes.append(NodeDef(name=name, op=op, attr=_attributes(array)))
            blocks.setdefault(name.rpartition("/")[0], []).append(name)
    for block, names in blocks.items():
        nodes.append(NodeDef(name=f"{block}/block" if block else "model", op="Block", input=names))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))


def _attributes(array: Any) -> dict[str, Any]:
    from tensorboardX.proto.attr_value_pb2 import AttrValue  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf

    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=int(size)) for size in np.shape(array)])
    parameters = int(np.prod(np.shape(array), dtype=np.int64))
    return {
        "_output_shapes": AttrValue(list=AttrValue.ListValue(shape=[shape])),
        "dtype": AttrValue(type=_DTYPES.get(str(array.dtype), 0)),
        "parameters": AttrValue(i=parameters),
    }
