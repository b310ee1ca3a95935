"""The features that a graph parses from tf.Examples: nodes ParseExample and ParseExampleV2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from estimator_migration.savedmodels.graph import Graph, Node
from estimator_migration.savedmodels.records import ExampleFeature, Parsing

PARSERS = ("ParseExample", "ParseExampleV2")
#: Operations that pass on the values of a feature, or a part of them.
_HAND_ON = (
    *("Identity", "IdentityN", "Reshape", "Squeeze", "ExpandDims", "GatherNd", "GatherV2", "Where", "NotEqual", "Cast"),
    *("AsString", "StringLower", "StringStrip", "SparseReshape", "SparseToDense", "PlaceholderWithDefault"),
    *("StridedSlice", "Select", "SelectV2"),
)


def parsings(graph: Graph) -> list[Parsing]:
    """Returns all places of a graph where tf.Examples are parsed."""
    return [_parsing(graph, node) for node in graph if node.op in PARSERS]


def keys_of(graph: Graph, node: Node) -> list[str | None]:
    """Returns the feature of each output of a parser, or None where it is not known.

    Source: tensorflow/core/ops/parsing_ops.cc.
    """
    sparse, dense, ragged = _names(graph, node)
    outputs = [*sparse, *sparse, *sparse, *dense]  # indices, values, shapes
    return [*outputs, *ragged, *ragged] if node.op == "ParseExampleV2" else list(outputs)


def feature_behind(graph: Graph, tensor: str) -> str | None:
    """Returns the feature, or the name of the placeholder, whose values a tensor holds, or None."""
    found = set[str | None]()
    waiting, seen = [tensor], set[str]()
    while waiting:
        name = waiting.pop()
        node = graph.source(name)
        if name in seen or (node is not None and node.op == "Const"):
            continue
        seen.add(name)
        if node is not None and node.op in PARSERS:
            keys, place = keys_of(graph, node), _place(graph, node, name)
            found.add(keys[place] if place is not None and place < len(keys) else None)
        elif node is not None and node.op == "Placeholder":
            found.add(f"{node.name}:0")
        elif node is None or node.op not in _HAND_ON:
            return None
        else:
            waiting += node.inputs
    return found.pop() if len(found) == 1 else None


def _place(graph: Graph, node: Node, tensor: str) -> int | None:
    """Returns the position of an output. In functions it is `node:output:position`, counted within the output."""
    parts = tensor.split(":")[1:]
    if not parts:
        return 0
    if len(parts) == 1:
        return int(parts[0])
    sparse, dense, _ = _names(graph, node)
    starts = ("sparse_indices", "sparse_values", "sparse_shapes", "dense_values")
    if parts[0] not in starts:
        return None
    before = len(sparse) * starts.index(parts[0])
    return before + int(parts[1]) if int(parts[1]) < max(len(sparse), len(dense)) else None


def _parsing(graph: Graph, node: Node) -> Parsing:
    sparse, dense, ragged = _names(graph, node)
    found: dict[str, ExampleFeature] = {}
    variable = zip(sparse, node.types("sparse_types"), strict=False)
    found |= {key: ExampleFeature(kind="any number", dtype=dtype) for key, dtype in variable if key is not None}
    of_rows = zip(ragged, node.types("ragged_value_types"), strict=False)
    found |= {key: ExampleFeature(kind="ragged", dtype=dtype) for key, dtype in of_rows if key is not None}
    shapes, types = node.shapes("dense_shapes"), node.types("Tdense")
    for place, (key, shape, dtype) in enumerate(zip(dense, shapes, types, strict=False)):
        default = graph.constant(node.inputs[len(node.inputs) - len(dense) + place])
        if key is not None:
            found[key] = _dense(shape, dtype, default)
    return Parsing(node=node.name, source=_records(graph, node), features=dict(sorted(found.items())))


def _dense(shape: tuple[int | None, ...], dtype: str, default: Any) -> ExampleFeature:
    if shape[:1] == (None,):
        fill = default[0] if default else None
        return ExampleFeature(kind="sequence", dtype=dtype, shape=_sizes(shape[1:]), default=fill)
    sizes = _sizes(shape)
    return ExampleFeature(kind="fixed", dtype=dtype, shape=sizes, default=_nested(default, sizes) if default else None)


def _nested(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return values[0]
    if len(values) < math.prod(shape):  # one value for all
        values = list(values) * math.prod(shape)
    step = math.prod(shape[1:])
    return [_nested(values[place * step : (place + 1) * step], shape[1:]) for place in range(shape[0])]


def _sizes(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple(size or 0 for size in shape)


def _records(graph: Graph, node: Node) -> str | None:
    """Returns the placeholder of the serialized records."""
    return feature_behind(graph, node.inputs[0]) if node.inputs else None


def _names(graph: Graph, node: Node) -> tuple[list[str | None], list[str | None], list[str | None]]:
    """Returns the keys of the variable-length features, of the dense ones and of the ragged ones."""
    if node.op == "ParseExampleV2":
        sparse, dense, ragged = (_strings(graph, name) for name in node.inputs[2:5])
        return sparse, dense, ragged
    sparse_count, dense_count = len(node.types("sparse_types")), len(node.types("Tdense"))
    keys = [(_strings(graph, name) or [None])[0] for name in node.inputs[2 : 2 + sparse_count + dense_count]]
    return keys[:sparse_count], keys[sparse_count:], []


def _strings(graph: Graph, tensor: str) -> list[str | None]:
    return [str(value) for value in graph.constant(tensor) or []]
