"""The nodes of an ONNX graph, written one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx  # pyright: ignore[reportMissingImports]

CLASSIC = "ai.onnx.ml"
STRING = "string"


class Value(NamedTuple):
    """A value of a graph.

    Attributes:
        name: the name of the value.
        shape: the shape of one example.
        dtype: "string", or the numpy name of the dtype.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


def element_type(dtype: str) -> int:
    """Returns the ONNX number of a dtype.

    Example:
        >>> element_type("string"), element_type("float32")
        (8, 1)
    """
    if dtype == STRING:
        return onnx.TensorProto.STRING
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


@dataclass
class Nodes:
    """The part of a graph that has been written.

    Attributes:
        written: the nodes in order.
        constants: the constant tensors of the nodes.
        domains: the operator sets of the nodes, except that of ONNX itself.
    """

    written: list[Any] = field(default_factory=list[Any])
    constants: list[Any] = field(default_factory=list[Any])
    domains: set[str] = field(default_factory=set[str])

    def add(
        self,
        operator: str,
        *inputs: str,
        domain: str = "",
        output: str | None = None,
        title: str = "",
        **attributes: Any,
    ) -> str:
        """Writes a node, and returns the name of its output. Errors of a reader contain the title."""
        name = f"host/{len(self.written)}" if output is None else output
        called = f"{name} {title or operator}"
        node = onnx.helper.make_node(operator, inputs, [name], name=called, domain=domain, **attributes)
        self.written.append(node)
        self.domains |= {domain} - {""}
        return name

    def constant(self, value: Any, dtype: str) -> str:
        """Writes a constant tensor, and returns its name. Strings are bytes."""
        name = f"host/constant {len(self.constants)}"
        if dtype == STRING:
            words = np.asarray(value, object)
            tensor = onnx.helper.make_tensor(name, onnx.TensorProto.STRING, words.shape, words.reshape(-1).tolist())
        else:
            tensor = onnx.numpy_helper.from_array(np.asarray(value, dtype), name)
        self.constants.append(tensor)
        return name

    def cast(self, name: str, dtype: str) -> str:
        """Writes a cast to another dtype."""
        return self.add("Cast", name, to=element_type(dtype))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """Writes a reshape of each example."""
        return self.add("Reshape", name, self.constant([0, *shape], "int64"))

    def filled(self, like: str, value: Any, width: int | None, dtype: str) -> str:
        """Writes a [batch, width] or [batch] tensor of one value, with the batch size of another value."""
        batch = self.add("Shape", like, start=0, end=1)
        shape = batch if width is None else self.add("Concat", batch, self.constant([width], "int64"), axis=0)
        return self.add("Expand", self.constant([value], dtype), shape)
