"""Requests of serialized tf.Example records, parsed on the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._export.example_proto import example_class
from estimator_core._export.features import Feature
from estimator_core._export.receivers import ServingInputReceiver, check_batch_size
from estimator_core.errors import ArgumentError, ArgumentTypeError

RECEIVER = "examples"
_KIND_OF = {"string": "bytes_list", "f": "float_list", "i": "int64_list", "u": "int64_list", "b": "int64_list"}


class ParseExample:
    """A host transform from serialized tf.Example records to arrays.

    Args:
        features: for each feature `{"shape": [...], "dtype": "...", "default": ...}`.
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
        """The arguments."""
        return {"features": self._features, "receiver": self._receiver}

    @property
    def files(self) -> Mapping[str, Path]:
        """None."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The features of a batch of records (bytes, [batch]).

        Raises:
            ArgumentError: a record that is no tf.Example, lacks a feature, or has another kind or number of values.
        """
        records = [self._parsed(record, row) for row, record in enumerate(batch[self._receiver].reshape(-1).tolist())]
        return {name: self._column(name, spec, records) for name, spec in self._features.items()}

    def _parsed(self, record: Any, row: int) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return (
                example_class()
                .FromString(record.encode("latin-1") if isinstance(record, str) else bytes(record))
                .features.feature
            )
        except (DecodeError, TypeError, ValueError) as error:
            raise ArgumentError(f"Record {row} is no serialized tf.Example: {error}.") from error

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


def _values(name: str, spec: Mapping[str, Any], kind: str, size: int, record: Any, row: int) -> Any:
    found = record.get(name)
    if found is None or found.WhichOneof("kind") is None:
        if spec["default"] is None:
            raise ArgumentError(f"Record {row} lacks the feature {name!r}, which has no default value.")
        return np.broadcast_to(
            np.asarray(spec["default"], object if kind == "bytes_list" else None).reshape(-1), (size,)
        )
    if found.WhichOneof("kind") != kind:
        raise ArgumentError(f"Record {row}: feature {name!r} is a {found.WhichOneof('kind')}, and must be a {kind}.")
    values = getattr(found, kind).value
    if len(values) != size:
        raise ArgumentError(f"Record {row}: feature {name!r} has {len(values)} values, and must have {size}.")
    return list(values)


def _check_range(name: str, dtype: str, values: np.ndarray) -> None:
    if dtype == "bool":
        return
    limits = np.iinfo(dtype)
    outside = (values < limits.min) | (values > limits.max)
    if outside.any():
        row = int(np.argwhere(outside)[0][0])
        raise ArgumentError(
            f"Record {row}: feature {name!r} has a value out of the range of {dtype}: {values[row].tolist()}."
        )


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A serving_input_receiver_fn for requests of serialized tf.Example records, under the name "examples".

    The raw signatures of the export parse them on the host; its array signatures take the features.

    Args:
        feature_spec: a `FixedLenFeature` (or one of TensorFlow) for each feature. model_fn gets int64 features as
            int32, and values beyond
            its range are refused.
        default_batch_size: a fixed batch size; None: any.

    Raises:
        ArgumentError, ArgumentTypeError: for what is no specification of features of fixed length.

    Example:
        >>> from estimator_core._export import FixedLenFeature
        >>> receiver = build_parsing_serving_input_receiver_fn({"x": FixedLenFeature((2,), "float32")})()
        >>> receiver.receiver_tensors
        {'examples': Feature(shape=(None,), dtype='string')}

    Source: `tf.estimator.export.build_parsing_serving_input_receiver_fn`.
    """
    if not isinstance(feature_spec, Mapping) or not feature_spec:
        raise ArgumentTypeError(
            f"feature_spec must be a dict of ec.export.FixedLenFeature by name, given: {feature_spec!r}."
        )
    check_batch_size(default_batch_size)
    parsed = {name: _spec(name, spec) for name, spec in feature_spec.items()}
    features = {name: Feature((default_batch_size, *spec["shape"]), spec["dtype"]) for name, spec in parsed.items()}

    def serving_input_receiver_fn() -> ServingInputReceiver:
        return ServingInputReceiver(
            features, {RECEIVER: Feature((default_batch_size,), "string")}, transforms=(ParseExample(parsed),)
        )

    return serving_input_receiver_fn


def _spec(name: str, spec: Any) -> dict[str, Any]:
    fixed = all(hasattr(spec, field) for field in ("shape", "dtype", "default_value"))
    if not fixed or hasattr(spec, "allow_missing"):
        raise ArgumentTypeError(
            f"feature_spec[{name!r}] must be an ec.export.FixedLenFeature, given: {spec!r}. Features of any length "
            "have no fixed shape: "
            "pad them on the client, or parse them with a HostTransform of your own."
        )
    feature = Feature(tuple(spec.shape), getattr(spec.dtype, "as_numpy_dtype", spec.dtype))
    if None in feature.shape:
        raise ArgumentError(f"feature_spec[{name!r}]: all sizes must be fixed, given: {feature.shape}.")
    default = spec.default_value
    if isinstance(default, bytes):
        default = default.decode("latin-1")
    dtype = {"int64": "int32", "float64": "float32"}.get(feature.dtype, feature.dtype)
    return {
        "shape": list(feature.shape),
        "dtype": dtype,
        "default": np.asarray(default).tolist() if default is not None else None,
    }
