"""The host part of an export as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from estimator_core.errors import ExportError
from estimator_core.export import (
    Bucketize,
    Cast,
    Cross,
    EqualLengths,
    Fit,
    FullLengths,
    HashBucket,
    HostProgram,
    Lengths,
    Lookup,
    NameOf,
    Reshape,
    Within,
)
from estimator_exporters.onnx.crosses import cross
from estimator_exporters.onnx.hashes import buckets, fingerprints
from estimator_exporters.onnx.nodes import CLASSIC, STRING, Nodes, Value

Values = Mapping[str, Value]
#: The checks that a graph leaves out, because a graph cannot refuse a batch.
UNCHECKED = {EqualLengths: "sequences of one example that differ in their lengths"}


def run_programs(nodes: Nodes, programs: Sequence[HostProgram], batch: Values) -> dict[str, Value]:
    """Writes the operations of host transforms, and returns their outputs by name.

    Args:
        nodes: the graph to write to.
        programs: the programs of the transforms, in order.
        batch: the inputs of the first program, by name.

    Raises:
        ExportError: ONNX lacks an operation. The message names it.
    """
    found = dict(batch)
    for program in programs:
        for operation in program.operations:
            lower = _LOWERED.get(type(operation))
            if lower is None:
                raise ExportError(
                    f"ONNX has no operation for {type(operation).__name__} of the host part. Let the receiver take the "
                    "features (build_raw_serving_input_receiver_fn), or use the format 'saved_model' or 'stablehlo'."
                )
            found |= lower(nodes, operation, found)
        found = {name: found[value] for name, value in program.outputs.items()}
    return found


def _reshape(nodes: Nodes, operation: Reshape, values: Values) -> Values:
    value = values[operation.input]
    size = prod(value.shape)
    known = prod(one for one in operation.shape if one != -1)
    shape = tuple(size // max(known, 1) if one == -1 else one for one in operation.shape)
    same = shape == value.shape
    return {operation.output: Value(value.name if same else nodes.reshape(value.name, shape), shape, value.dtype)}


def _cast(nodes: Nodes, operation: Cast, values: Values) -> Values:
    value = values[operation.input]
    name = value.name if value.dtype == operation.dtype else nodes.cast(value.name, operation.dtype)
    return {operation.output: Value(name, value.shape, operation.dtype)}


def _fit(nodes: Nodes, operation: Fit, values: Values) -> Values:
    value, width = values[operation.input], operation.width
    (given,) = value.shape
    if given > width:
        raise ExportError(
            f"A feature has {given} places, but its column has {width}: a graph cannot refuse batches with "
            f"more values. Give the feature {width} places in the receiver, or use the format 'stablehlo'."
        )
    if given == width:
        return {operation.output: value}
    fill = nodes.filled(value.name, operation.fill, width - given, value.dtype)
    return {operation.output: Value(nodes.add("Concat", value.name, fill, axis=1), (width,), value.dtype)}


def _within(nodes: Nodes, operation: Within, values: Values) -> Values:
    value = values[operation.input]
    least = nodes.add("GreaterOrEqual", value.name, nodes.constant(0, "int64"))
    below = nodes.add("Less", value.name, nodes.constant(operation.count, "int64"))
    inside = nodes.add("And", least, below)
    found = nodes.add("Where", inside, value.name, nodes.constant(operation.otherwise, "int64"))
    return {operation.output: _present(nodes, value, found)}


def _lookup(nodes: Nodes, operation: Lookup, values: Values) -> Values:
    value = values[operation.input]
    kind = "keys_strings" if value.dtype == STRING else "keys_int64s"
    keys: dict[str, Any] = {kind: list(operation.words), "values_int64s": list(range(len(operation.words)))}
    hashed = operation.buckets > 1
    unknown = -1 if hashed else len(operation.words) if operation.buckets else operation.otherwise
    found = nodes.add("LabelEncoder", value.name, domain=CLASSIC, default_int64=unknown, **keys)
    if hashed:
        places = nodes.constant(len(operation.words), "int64")
        beyond = nodes.add("Add", buckets(nodes, value, operation.buckets), places)
        found = nodes.add("Where", nodes.add("Less", found, nodes.constant(0, "int64")), beyond, found)
    return {operation.output: _present(nodes, value, found)}


def _bucketize(nodes: Nodes, operation: Bucketize, values: Values) -> Values:
    value, count = values[operation.input], len(operation.boundaries)
    (places,) = value.shape
    number = nodes.add("Unsqueeze", value.name, nodes.constant([2], "int64"))
    above = nodes.add("GreaterOrEqual", number, nodes.constant(operation.boundaries, "float32"))
    found = nodes.add("ReduceSum", nodes.cast(above, "int64"), nodes.constant([2], "int64"), keepdims=0)
    found = nodes.add("Where", nodes.add("IsNaN", value.name), nodes.constant(count, "int64"), found)
    offsets = nodes.constant(np.arange(places) * (count + 1), "int64")
    return {operation.output: Value(nodes.add("Add", found, offsets), value.shape, "int64")}


def _hash_bucket(nodes: Nodes, operation: HashBucket, values: Values) -> Values:
    value = values[operation.input]
    return {operation.output: _present(nodes, value, buckets(nodes, value, operation.buckets))}


def _cross(nodes: Nodes, operation: Cross, values: Values) -> Values:
    taken = [values[name] for name in operation.inputs]
    words = [fingerprints(nodes, value) if value.dtype == STRING else value.name for value in taken]
    widths = [prod(value.shape) for value in taken]
    found = cross(nodes, words, widths, operation.key, operation.buckets)
    width, missing = 1, nodes.constant([[False]], "bool")
    for value, size, name in zip(taken, widths, operation.blanks, strict=True):
        judged = value if name is None else values[name]
        blank = nodes.add("And", _blank(nodes, judged), nodes.constant(name is not None, "bool"))
        left = nodes.add("Unsqueeze", missing, nodes.constant([2], "int64"))
        right = nodes.add("Unsqueeze", blank, nodes.constant([1], "int64"))
        width *= size
        missing = nodes.reshape(nodes.add("Or", left, right), (width,))
    ids = nodes.add("Where", missing, nodes.constant(-1, "int64"), found)
    return {operation.output: Value(ids, (width,), "int64")}


def _lengths(nodes: Nodes, operation: Lengths, values: Values) -> Values:
    value = values[operation.input]
    (places,) = value.shape
    present = nodes.cast(nodes.add("Not", _blank(nodes, value)), "int64")
    counted = nodes.add("Mul", present, nodes.constant(np.arange(1, places + 1), "int64"))
    most = nodes.add("ReduceMax", counted, nodes.constant([1], "int64"), keepdims=0)
    return {operation.output: Value(nodes.cast(most, "int32"), (), "int32")}


def _full_lengths(nodes: Nodes, operation: FullLengths, values: Values) -> Values:
    name = nodes.filled(values[operation.input].name, operation.steps, None, "int32")
    return {operation.output: Value(name, (), "int32")}


def _equal_lengths(nodes: Nodes, operation: EqualLengths, values: Values) -> Values:
    return {}


def _name_of(nodes: Nodes, operation: NameOf, values: Values) -> Values:
    value = values[operation.input]
    names = nodes.constant([name.encode() for name in operation.names], STRING)
    return {operation.output: Value(nodes.add("Gather", names, value.name), value.shape, STRING)}


def _blank(nodes: Nodes, value: Value) -> str:
    nothing = nodes.constant(b"" if value.dtype == STRING else -1, value.dtype)
    return nodes.add("Equal", value.name, nothing)


def _present(nodes: Nodes, value: Value, ids: str) -> Value:
    """Returns the ids, with -1 for missing values."""
    return Value(nodes.add("Where", _blank(nodes, value), nodes.constant(-1, "int64"), ids), value.shape, "int64")


_LOWERED: dict[type, Callable[[Nodes, Any, Values], Values]] = {
    Reshape: _reshape,
    Cast: _cast,
    Fit: _fit,
    Within: _within,
    HashBucket: _hash_bucket,
    Lookup: _lookup,
    Bucketize: _bucketize,
    Cross: _cross,
    Lengths: _lengths,
    FullLengths: _full_lengths,
    EqualLengths: _equal_lengths,
    NameOf: _name_of,
}
