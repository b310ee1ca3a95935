"""The host part of an export as TensorFlow operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, cast

import numpy as np
import tensorflow as tf

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
    ParsedFeature,
    ParseExamples,
    Reshape,
    Within,
)

Tensors = Mapping[str, Any]
_STORED = {"f": tf.float32, "i": tf.int64, "u": tf.int64, "b": tf.int64}


def run_programs(programs: Sequence[HostProgram], batch: Tensors) -> dict[str, Any]:
    """Returns the batch after the operations of host transforms, in the default graph.

    Args:
        programs: the programs of the transforms, in order.
        batch: the tensors by name. The first axis is the example.
    """
    found = dict(batch)
    for program in programs:
        for operation in program.operations:
            found |= LOWERED[type(operation)](operation, found)
        found = {name: found[value] for name, value in program.outputs.items()}
    return found


def _parse(operation: ParseExamples, values: Tensors) -> Tensors:
    specs = {name: _spec(feature) for name, feature in operation.features.items()}
    parsed: Any = tf.io.parse_example(values[operation.input], specs)
    return {name: _parsed(name, feature, parsed[name]) for name, feature in operation.features.items()}


def _spec(feature: ParsedFeature) -> Any:
    dtype = _stored(feature)
    if feature.variable:
        return tf.io.FixedLenSequenceFeature([], dtype, allow_missing=True, default_value=_blank(dtype))
    default = None if feature.default is None else np.asarray(feature.default, dtype.as_numpy_dtype)
    return tf.io.FixedLenFeature(
        feature.shape, dtype, default_value=None if default is None else default.reshape(feature.shape)
    )


def _parsed(name: str, feature: ParsedFeature, value: Any) -> Any:
    if feature.variable:
        (places,) = feature.shape
        found = tf.shape(value)[1]
        message = f"The feature {name!r} has more values than the {places} that this export accepts."
        with _refused_unless(found <= places, message):
            value = tf.pad(value, cast(Any, [[0, 0], [0, places - found]]), constant_values=_blank(value.dtype))
        value = tf.ensure_shape(value, [None, places])
    return narrowed(value, feature.dtype, f"The feature {name!r}")


def narrowed(value: Any, dtype: str, what: str) -> Any:
    """Returns the values in another dtype. The graph refuses a batch with integers that are out of its range."""
    wanted = tf.as_dtype(dtype)
    if value.dtype == wanted:
        return value
    if value.dtype.is_integer and wanted.is_integer and value.dtype.size > wanted.size:
        inside = tf.reduce_all((value >= wanted.min) & (value <= wanted.max))
        with _refused_unless(inside, f"{what} has a value outside the range of {dtype}."):
            return tf.cast(value, wanted)
    return tf.cast(value, wanted)


def _stored(feature: ParsedFeature) -> Any:
    return tf.string if feature.dtype == "string" else _STORED[np.dtype(feature.dtype).kind]


def _blank(dtype: Any) -> Any:
    return "" if dtype == tf.string else -1 if dtype.is_integer else 0.0


def _refused_unless(condition: Any, message: str) -> Any:
    return tf.control_dependencies([tf.debugging.Assert(condition, [message])])


def _is_blank(value: Any) -> Any:
    return tf.equal(value, _blank(value.dtype))


def _reshape(operation: Reshape, values: Tensors) -> Tensors:
    return {operation.output: tf.reshape(values[operation.input], [-1, *operation.shape])}


def _cast(operation: Cast, values: Tensors) -> Tensors:
    return {operation.output: tf.cast(values[operation.input], operation.dtype)}


def _fit(operation: Fit, values: Tensors) -> Tensors:
    value = values[operation.input]
    found, width = value.shape[1], operation.width
    if found <= width:
        filled = tf.pad(value, [[0, 0], [0, width - found]], constant_values=cast(Any, operation.fill))
        return {operation.output: filled}
    empty = tf.reduce_all(tf.equal(value[:, width:], operation.fill))
    with _refused_unless(empty, f"An example has more values than the {width} of its column."):
        return {operation.output: tf.identity(value[:, :width])}


def _within(operation: Within, values: Tensors) -> Tensors:
    value = values[operation.input]
    inside = (value >= 0) & (value < operation.count)
    found = tf.where(inside, value, tf.constant(operation.otherwise, value.dtype))
    return {operation.output: tf.where(_is_blank(value), tf.constant(-1, value.dtype), found)}


def _text(value: Any) -> Any:
    return value if value.dtype == tf.string else tf.strings.as_string(value)


def _hash(operation: HashBucket, values: Tensors) -> Tensors:
    value = values[operation.input]
    buckets = tf.strings.to_hash_bucket_fast(_text(value), operation.buckets)
    return {operation.output: tf.where(_is_blank(value), tf.constant(-1, tf.int64), buckets)}


def _lookup(operation: Lookup, values: Tensors) -> Tensors:
    value = values[operation.input]
    words = tf.constant(list(operation.words), value.dtype)
    places = tf.range(len(operation.words), dtype=tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, places), default_value=-1)
    found = table.lookup(value)
    otherwise: Any = tf.constant(operation.otherwise, tf.int64)
    if operation.buckets:
        otherwise = len(operation.words) + tf.strings.to_hash_bucket_fast(_text(value), operation.buckets)
    found = tf.where(found < 0, otherwise, found)
    return {operation.output: tf.where(_is_blank(value), tf.constant(-1, tf.int64), found)}


def _bucketize(operation: Bucketize, values: Tensors) -> Tensors:
    value = values[operation.input]
    buckets = tf.raw_ops.Bucketize(input=value, boundaries=list(operation.boundaries))
    offsets = np.arange(value.shape[1], dtype=np.int64) * (len(operation.boundaries) + 1)
    return {operation.output: tf.cast(buckets, tf.int64) + offsets}


def _cross(operation: Cross, values: Tensors) -> Tensors:
    parts = [values[name] for name in operation.inputs]
    widths = [part.shape[1] for part in parts]
    crossed = tf.raw_ops.SparseCross(
        indices=[],
        values=[],
        shapes=[],
        dense_inputs=parts,
        hashed_output=True,
        num_buckets=operation.buckets,
        hash_key=operation.key,
        out_type=tf.int64,
        internal_type=tf.string if all(part.dtype == tf.string for part in parts) else tf.int64,
    )
    hashes = tf.reshape(crossed.output_values, [-1, prod(widths)])
    # The index of each part in every combination, in the order of TensorFlow: the last part is fastest.
    chosen = [place.reshape(-1) for place in np.meshgrid(*map(np.arange, widths), indexing="ij")]
    missing = [
        tf.gather(_is_blank(values[name]), place, axis=1)
        for name, place in zip(operation.blanks, chosen, strict=True)
        if name is not None
    ]
    blank: Any = reduce(tf.logical_or, missing, tf.zeros_like(hashes, tf.bool))
    return {operation.output: tf.where(blank, tf.constant(-1, tf.int64), hashes)}


def _lengths(operation: Lengths, values: Tensors) -> Tensors:
    value = values[operation.input]
    places = tf.range(1, value.shape[1] + 1, dtype=tf.int32)
    filled = tf.where(_is_blank(value), 0, places)
    return {operation.output: tf.maximum(tf.reduce_max(filled, axis=1), 0)}


def _full_lengths(operation: FullLengths, values: Tensors) -> Tensors:
    return {operation.output: tf.fill(tf.shape(values[operation.input])[:1], operation.steps)}


def _equal_lengths(operation: EqualLengths, values: Tensors) -> Tensors:
    first, *others = operation.inputs
    same: Any = reduce(tf.logical_and, [tf.reduce_all(tf.equal(values[first], values[other])) for other in others])
    with _refused_unless(same, "All sequences of an example must have the same length."):
        return {name: tf.identity(values[name]) for name in operation.inputs}


def _name_of(operation: NameOf, values: Tensors) -> Tensors:
    return {operation.output: tf.gather(tf.constant(list(operation.names)), values[operation.input])}


#: The functions that write each kind of operation.
LOWERED: Mapping[type, Callable[[Any, Tensors], Tensors]] = {
    ParseExamples: _parse,
    Reshape: _reshape,
    Cast: _cast,
    Fit: _fit,
    Within: _within,
    HashBucket: _hash,
    Lookup: _lookup,
    Bucketize: _bucketize,
    Cross: _cross,
    Lengths: _lengths,
    FullLengths: _full_lengths,
    EqualLengths: _equal_lengths,
    NameOf: _name_of,
}
