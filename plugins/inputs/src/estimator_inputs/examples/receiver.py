"""Receivers of requests with serialized tf.Example records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import Feature, ServingInputReceiver, build_raw_serving_input_receiver_fn
from estimator_inputs.examples.parse import RECEIVER, ParseExample


@dataclass(frozen=True)
class ExamplesReceiver(ServingInputReceiver):
    """A receiver of tf.Examples in which some features have any number of values.

    Args:
        refit: returns the receiver for a number of places per feature.
    """

    _: KW_ONLY
    refit: Callable[[Mapping[str, int]], ServingInputReceiver]

    def fitted(self, places: Mapping[str, int]) -> ServingInputReceiver:
        """Returns the receiver with as many places as training saw values."""
        return self.refit(places)


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None, *, places: Mapping[str, int] | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a serving_input_receiver_fn for requests of serialized tf.Example records, with the name "examples".

    The raw signatures of the export parse the records on the host. The array signatures accept the features.

    Args:
        feature_spec: a `FixedLenFeature` or `VarLenFeature` (or that of TensorFlow) for each feature. Host transforms
            receive 64-bit integers. If model_fn receives them, values beyond the range of int32 are refused.
        default_batch_size: a fixed batch size. None: any batch size.
        places: the largest number of values of each `VarLenFeature`, by name. Default: as many as in training, or one.
            Shorter values are padded with -1, b"" or 0.

    Raises:
        ArgumentError, ArgumentTypeError: a value is not the specification of a feature.

    Example:
        >>> from estimator_inputs import FixedLenFeature, VarLenFeature
        >>> spec = {"x": FixedLenFeature((2,), "float32"), "tags": VarLenFeature("string")}
        >>> receiver = build_parsing_serving_input_receiver_fn(spec, places={"tags": 3})()
        >>> receiver.receiver_tensors
        {'examples': Feature(shape=(None,), dtype='string')}
        >>> receiver.features["tags"]
        Feature(shape=(None, 3), dtype='string')

    Source: `tf.estimator.export.build_parsing_serving_input_receiver_fn`.
    """
    if not isinstance(feature_spec, Mapping) or not feature_spec:
        raise ArgumentTypeError(
            f"feature_spec must be a dict of ec.export.FixedLenFeature by name, given: {feature_spec!r}."
        )
    given = dict(places or {})
    parsed = {name: _spec(name, spec) for name, spec in feature_spec.items()}
    unknown = sorted(given.keys() - {name for name, spec in parsed.items() if spec.get("variable")})
    if unknown:
        raise ArgumentError(f"places: {unknown} are not VarLenFeatures of feature_spec.")
    if any(most < 1 for most in given.values()):
        raise ArgumentError(f"places must be at least 1, given: {given}.")
    records = Feature((default_batch_size,), "string")

    def receiver(seen: Mapping[str, int]) -> ServingInputReceiver:
        fitted: dict[str, dict[str, Any]] = {
            name: {**spec, "shape": [given.get(name, max(1, seen.get(name, 1)))]} if spec.get("variable") else spec
            for name, spec in parsed.items()
        }
        features = {name: Feature((None, *spec["shape"]), spec["dtype"]) for name, spec in fitted.items()}
        of_features = build_raw_serving_input_receiver_fn(features, default_batch_size)()
        return ExamplesReceiver(
            of_features.features, {RECEIVER: records}, transforms=(ParseExample(fitted),), refit=receiver
        )

    by_default = receiver({})
    return lambda: by_default


def _spec(name: str, spec: Any) -> dict[str, Any]:
    if hasattr(spec, "dtype") and not hasattr(spec, "shape"):
        return {"shape": [1], "dtype": Feature((), _dtype(spec)).dtype, "default": None, "variable": True}
    fixed = all(hasattr(spec, field) for field in ("shape", "dtype", "default_value"))
    if not fixed or hasattr(spec, "allow_missing"):
        raise ArgumentTypeError(
            f"feature_spec[{name!r}] must be an ec.export.FixedLenFeature or VarLenFeature, given: {spec!r}. Pad "
            "sequences of items on the client, or parse them with your own HostTransform."
        )
    feature = Feature(tuple(spec.shape), _dtype(spec))
    if None in feature.shape:
        raise ArgumentError(f"feature_spec[{name!r}]: all sizes must be fixed, given: {feature.shape}.")
    default = spec.default_value
    return {
        "shape": list(feature.shape),
        "dtype": "float32" if feature.dtype == "float64" else feature.dtype,
        "default": None if default is None else _as_json(default),
    }


def _dtype(spec: Any) -> Any:
    return getattr(spec.dtype, "as_numpy_dtype", spec.dtype)


def _as_json(default: Any) -> Any:
    """Returns numbers, or bytes as latin-1 text, with their nesting."""
    if isinstance(default, str):
        default = default.encode()
    if isinstance(default, bytes):
        return default.decode("latin-1")
    if isinstance(default, (list, tuple)):
        return [_as_json(item) for item in default]
    return np.asarray(default).tolist()
