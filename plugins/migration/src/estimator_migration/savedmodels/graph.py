"""The nodes of a TensorFlow graph, their attributes and constants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from estimator_migration.savedmodels import wire

# The numbers of tensorflow.DataType. References of TensorFlow 1 have numbers that are higher by 100.
_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    20: "resource",
    21: "variant",
    22: "uint32",
    23: "uint64",
}
_NUMPY = {"float32": "<f4", "float64": "<f8", "int32": "<i4", "int64": "<i8", "bool": "?", "uint8": "u1", "int8": "i1"}

Values = list[int | float | str]


def dtype_name(number: int) -> str:
    """Returns the name of a dtype.

    Example:
        >>> dtype_name(1), dtype_name(107)
        ('float32', 'string')
    """
    return _DTYPES.get(number % 100, f"type {number}")


def shape_of(message: bytes) -> tuple[int | None, ...] | None:
    """Returns the sizes of a TensorShapeProto. None means any size, or any rank."""
    found = wire.fields(message)
    if wire.integer(found, 3):
        return None
    sizes = [wire.integer(wire.fields(dim), 1) for dim in wire.contents(found, 2)]
    return tuple(None if size < 0 else size for size in sizes)


@dataclass(frozen=True)
class Node:
    """A node of the graph."""

    message: bytes

    @cached_property
    def _fields(self) -> wire.Fields:
        return wire.fields(self.message)

    @property
    def name(self) -> str:
        """The name of the node."""
        return wire.text(self._fields, 1)

    @property
    def op(self) -> str:
        """The operation of the node."""
        return wire.text(self._fields, 2)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The input tensors: a name, or name:position."""
        return tuple(name for name in wire.texts(self._fields, 3) if not name.startswith("^"))

    @cached_property
    def _attributes(self) -> Mapping[str, bytes]:
        return wire.entries(self._fields, 5)

    def attribute(self, name: str) -> wire.Fields:
        """Returns an attribute, as its fields."""
        return wire.fields(self._attributes.get(name, b""))

    def types(self, name: str) -> list[str]:
        """Returns a list of dtypes."""
        return [dtype_name(number) for number in wire.integers(wire.message(self.attribute(name), 1), 6)]

    def shapes(self, name: str) -> list[tuple[int | None, ...]]:
        """Returns a list of shapes."""
        return [shape_of(shape) or () for shape in wire.contents(wire.message(self.attribute(name), 1), 7)]


class Graph:
    """The nodes of a graph by name.

    Args:
        nodes: the messages of the nodes of a graph, or of one function of its library.
    """

    def __init__(self, nodes: list[bytes]) -> None:
        self._nodes = {node.name: node for node in map(Node, nodes)}

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def source(self, tensor: str) -> Node | None:
        """Returns the node that produces a tensor, or None for an argument of a function."""
        return self._nodes.get(tensor.split(":")[0])

    def constant(self, tensor: str) -> Values | None:
        """Returns the values of a constant, flat, or None if it is computed while the graph runs."""
        node = self.source(tensor)
        while node is not None and node.op in ("Identity", "Reshape"):
            node = self.source(node.inputs[0])
        if node is None or node.op != "Const":
            return None
        return _values(wire.message(node.attribute("value"), 8))


def _values(tensor: wire.Fields) -> Values | None:
    dtype = dtype_name(wire.integer(tensor, 1))
    shape = shape_of((wire.contents(tensor, 2) or [b""])[-1])
    if shape is None or None in shape:
        return None
    count = math.prod(size or 0 for size in shape)
    content = b"".join(wire.contents(tensor, 4))
    found: Values
    if content and dtype in _NUMPY:
        import numpy as np

        found = np.frombuffer(content, _NUMPY[dtype]).tolist()
    elif dtype == "string":
        found = list(wire.texts(tensor, 8))
    elif dtype in ("float32", "float64"):
        found = [*(wire.reals(tensor, 5, "f") if dtype == "float32" else wire.reals(tensor, 6, "d"))]
    else:
        found = [*wire.integers(tensor, {"int64": 10, "bool": 11}.get(dtype, 7))]
    if found and len(found) < count:  # the last value stands for all following ones
        found = [*found, *[found[-1]] * (count - len(found))]
    return found if len(found) == count else None
