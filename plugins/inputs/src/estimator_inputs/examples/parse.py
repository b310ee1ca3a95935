"""Parses serialized tf.Example records on the host, one batch at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import InputError
from estimator_core.export import Feature, HostProgram, ParsedFeature, ParseExamples
from estimator_inputs.examples.message import example_class

#: The name of the records in a request.
RECEIVER = "examples"
#: The padding values after the last value, by kind of list. Feature columns ignore them.
_BLANK: Mapping[str, Any] = {"bytes_list": b"", "int64_list": -1, "float_list": 0.0}
_KIND_OF = {"string": "bytes_list", "f": "float_list", "i": "int64_list", "u": "int64_list", "b": "int64_list"}


class ParseExample:
    """A host transform from serialized tf.Example records to arrays.

    Args:
        features: `{"shape": [...], "dtype": "...", "default": ...}` by feature. With `"variable": True`, records have
            at most as many values as the shape has places, and the other places are filled with -1, b"" or 0.
        receiver: the name of the records in the batch.

    Example:
        >>> record = example_class()()
        >>> record.features.feature["age"].int64_list.value.append(3)
        >>> parse = ParseExample({"age": {"shape": [], "dtype": "int64", "default": None}})
        >>> parse.apply({"examples": np.array([record.SerializeToString()], object)})
        {'age': array([3])}
    """

    name, version = "parse_example", 1

    def __init__(self, features: Mapping[str, Mapping[str, Any]], receiver: str = RECEIVER) -> None:
        self._features = {name: dict(spec) for name, spec in features.items()}
        self._receiver = receiver

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {"features": {name: _as_json(spec) for name, spec in self._features.items()}, "receiver": self._receiver}

    @property
    def files(self) -> Mapping[str, Path]:
        """There are no files."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the features of a batch of records (bytes, [batch]).

        Raises:
            InputError: a record is not a tf.Example, lacks a feature, or has another kind or number of values.
        """
        records = [self._parsed(record, row) for row, record in enumerate(batch[self._receiver].reshape(-1).tolist())]
        return {name: self._column(name, spec, records) for name, spec in self._features.items()}

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """Returns a program with one operation, which parses the records."""
        parsed = {name: _described(spec) for name, spec in self._features.items()}
        return HostProgram(
            operations=(ParseExamples(input=self._receiver, features=parsed),),
            outputs={name: name for name in parsed},
            features={name: Feature((None, *feature.shape), feature.dtype) for name, feature in parsed.items()},
        )

    def _parsed(self, record: Any, row: int) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return (
                example_class()
                .FromString(record.encode("latin-1") if isinstance(record, str) else bytes(record))
                .features.feature
            )
        except (DecodeError, TypeError, ValueError) as error:
            raise InputError(f"Record {row} is not a serialized tf.Example: {error}.") from error

    def _column(self, name: str, spec: Mapping[str, Any], records: list[Any]) -> np.ndarray:
        shape, dtype = tuple(spec["shape"]), spec["dtype"]
        kind = _KIND_OF["string" if dtype == "string" else np.dtype(dtype).kind]
        size = int(np.prod(shape))
        values = np.empty(
            (len(records), size), {"bytes_list": object, "float_list": np.float64, "int64_list": np.int64}[kind]
        )
        for row, record in enumerate(records):
            values[row] = _values(name, spec, kind, size, record, row)
        if kind == "int64_list":
            _check_range(name, dtype, values)
        return (
            values.reshape(len(records), *shape)
            if dtype == "string"
            else values.astype(dtype).reshape(len(records), *shape)
        )


def _described(spec: Mapping[str, Any]) -> ParsedFeature:
    default = spec["default"]
    if default is not None:
        default = tuple(np.broadcast_to(_default(spec), (int(np.prod(spec["shape"])),)).tolist())
    return ParsedFeature(
        shape=tuple(spec["shape"]), dtype=spec["dtype"], default=default, variable=spec.get("variable", False)
    )


def _as_json(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a feature whose default JSON can represent. NaN, which stands for an optional number, becomes a text."""
    default = spec["default"]
    if default is None or spec["dtype"] == "string" or np.isfinite(_default(spec)).all():
        return dict(spec)
    return {**spec, "default": [repr(value) for value in _default(spec).tolist()]}


def _default(spec: Mapping[str, Any]) -> np.ndarray:
    """Returns the flat values for records without the feature. In JSON, bytes are latin-1 text and NaN is a text."""
    if spec["dtype"] != "string":
        values = np.asarray(spec["default"]).reshape(-1)
        return values.astype(np.float64) if values.dtype.kind == "U" else values
    values = np.asarray(spec["default"], object).reshape(-1)
    values[:] = [value.encode("latin-1") for value in values.tolist()]
    return values


def _values(name: str, spec: Mapping[str, Any], kind: str, size: int, record: Any, row: int) -> Any:
    found = record.get(name)
    variable = spec.get("variable", False)
    if found is None or found.WhichOneof("kind") is None:
        if variable:
            return [_BLANK[kind]] * size
        if spec["default"] is None:
            raise InputError(f"Record {row} lacks the feature {name!r}, which has no default value.")
        return np.broadcast_to(_default(spec), (size,))
    if found.WhichOneof("kind") != kind:
        raise InputError(f"Record {row}: feature {name!r} is of kind {found.WhichOneof('kind')}, not {kind}.")
    values = list(getattr(found, kind).value)
    if variable:
        if len(values) > size:
            raise InputError(
                f"Record {row}: feature {name!r} has {len(values)} values, more than {size}. Raise its number of "
                "places in the receiver (or max_values= of its column), and export again."
            )
        return values + [_BLANK[kind]] * (size - len(values))
    if len(values) != size:
        raise InputError(f"Record {row}: feature {name!r} has {len(values)} values, but must have {size}.")
    return values


def _check_range(name: str, dtype: str, values: np.ndarray) -> None:
    if dtype == "bool":
        return
    limits = np.iinfo(dtype)
    outside = (values < limits.min) | (values > limits.max)
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise InputError(
            f"Record {row}: feature {name!r} has a value outside the range of {dtype}: {values[row].tolist()}."
        )
