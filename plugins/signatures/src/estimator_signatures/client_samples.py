"""Random client requests, which the check of an export sends through its host part."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from estimator_core.export import (
    Bucketize,
    Cast,
    Feature,
    Fit,
    HostProgram,
    Lengths,
    Lookup,
    ParsedFeature,
    ParseExamples,
    Reshape,
    Within,
)

_STRANGE = (b"", b"neither of them", b"\xc3\xa9")
_KINDS = {"string": 1, "f": 2, "i": 3, "u": 3, "b": 3}


@dataclass
class _Wanted:
    """The requirements of operations on the samples of a feature: values to include, and the number of places."""

    values: list[Any] = field(default_factory=lambda: [])
    most: int | None = None
    full: bool = False


def client_samples(
    programs: Sequence[HostProgram], receiver: Mapping[str, Feature], rows: int, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Returns a batch of client requests: known and unknown words, missing values, numbers on both sides of boundaries.

    Args:
        programs: the programs from the receiver to the inputs of the model.
        receiver: the features that clients send, by name.
        rows: the batch size, if it is free.
        generator: the generator of random numbers.
    """
    wanted, records = _wanted(programs)
    batch: dict[str, np.ndarray] = {}
    for name, feature in receiver.items():
        shape = tuple(rows if size is None else size for size in feature.shape)
        if name in records:
            batch[name] = _records(records[name], wanted, prod(shape), generator).reshape(shape)
        else:
            batch[name] = _sample(feature.dtype, shape, wanted.get(name, _Wanted()), generator)
    return batch


def _wanted(programs: Sequence[HostProgram]) -> tuple[dict[str, _Wanted], dict[str, ParseExamples]]:
    """Returns the requirements by feature, and the operation that parses each record, by the name of the record."""
    wanted: dict[str, _Wanted] = {}
    records: dict[str, ParseExamples] = {}
    origin: dict[str, str] = {}
    for program in programs:
        for one in program.operations:
            if isinstance(one, ParseExamples):
                records[one.input] = one
            elif isinstance(one, (Reshape, Cast, Fit, Lookup, Within, Bucketize, Lengths)):
                source = origin.get(one.input, one.input)
                origin[one.output] = source
                _learn(one, wanted.setdefault(source, _Wanted()))
        origin = {name: origin.get(value, value) for name, value in program.outputs.items()}
    return wanted, records


def _learn(operation: object, about: _Wanted) -> None:
    if isinstance(operation, Lookup):
        about.values += operation.words
    elif isinstance(operation, Within):
        about.values += [0, 1, operation.count - 1, operation.count]
    elif isinstance(operation, Bucketize):
        about.values += operation.boundaries
    elif isinstance(operation, Fit):
        about.most = operation.width if about.most is None else min(about.most, operation.width)
    elif isinstance(operation, Lengths):
        about.full = True


def _sample(dtype: str, shape: tuple[int, ...], wanted: _Wanted, generator: np.random.Generator) -> np.ndarray:
    if dtype == "string":
        strange = () if wanted.full else _STRANGE
        values = np.empty(shape, object)
        choices = [*wanted.values, *strange] or [_STRANGE[1]]
        values.reshape(-1)[:] = [choices[place] for place in generator.integers(0, len(choices), size=prod(shape))]
        blank: Any = b""
    elif np.dtype(dtype).kind in "iub":
        strange = () if wanted.full or np.dtype(dtype).kind != "i" else (-1,)
        values = generator.choice([0, 1, *wanted.values, *strange], size=shape).astype(dtype)
        blank = -1 if strange else 0
    else:
        values = generator.normal(size=shape)
        if wanted.values:
            values = np.where(values < 0, generator.choice(wanted.values, size=shape), values * 100)
        values, blank = values.astype(dtype), 0
    if wanted.most is not None and len(shape) > 1:
        values.reshape(shape[0], -1)[:, wanted.most :] = blank
    return values


def _records(
    parse: ParseExamples, wanted: Mapping[str, _Wanted], rows: int, generator: np.random.Generator
) -> np.ndarray:
    columns = {
        name: _sample(feature.dtype, (rows, *feature.shape), wanted.get(name, _Wanted()), generator)
        for name, feature in parse.features.items()
    }
    records = np.empty(rows, object)
    records[:] = [
        serialized_example({name: _values(parse.features[name], column[row]) for name, column in columns.items()})
        for row in range(rows)
    ]
    return records


def _values(feature: ParsedFeature, values: np.ndarray) -> tuple[int, list[Any]]:
    kind = _KINDS["string" if feature.dtype == "string" else np.dtype(feature.dtype).kind]
    found = values.reshape(-1).tolist()
    if feature.variable:
        while found and found[-1] in (b"", -1, 0.0):
            found.pop()
    return kind, found


def serialized_example(features: Mapping[str, tuple[int, Sequence[object]]]) -> bytes:
    """Returns a serialized tf.Example.

    Each feature has the number of its list (1 bytes, 2 float, 3 int64) and its values.

    Example:
        >>> serialized_example({"a": (3, [7])}).hex()
        '0a0c0a0a0a016112051a030a0107'
    """
    entries = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _field(kind, _list(kind, values))))
        for name, (kind, values) in features.items()
    )
    return _field(1, entries)


def _list(kind: int, values: Sequence[Any]) -> bytes:
    if kind == 1:
        return b"".join(_field(1, value) for value in values)
    if kind == 2:
        return _field(1, struct.pack(f"<{len(values)}f", *values))
    return _field(1, b"".join(_varint(int(value) & 0xFFFFFFFFFFFFFFFF) for value in values))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
