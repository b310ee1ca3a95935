"""Requests that carry serialized tf.Example records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import Feature, ServingInputReceiver, build_raw_serving_input_receiver_fn
from estimator_inputs.examples.parse import RECEIVER, ParseExample


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
        >>> from estimator_inputs import FixedLenFeature
        >>> receiver = build_parsing_serving_input_receiver_fn({"x": FixedLenFeature((2,), "float32")})()
        >>> receiver.receiver_tensors
        {'examples': Feature(shape=(None,), dtype='string')}

    Source: `tf.estimator.export.build_parsing_serving_input_receiver_fn`.
    """
    if not isinstance(feature_spec, Mapping) or not feature_spec:
        raise ArgumentTypeError(
            f"feature_spec must be a dict of ec.export.FixedLenFeature by name, given: {feature_spec!r}."
        )
    parsed = {name: _spec(name, spec) for name, spec in feature_spec.items()}
    features = {name: Feature((None, *spec["shape"]), spec["dtype"]) for name, spec in parsed.items()}
    of_features = build_raw_serving_input_receiver_fn(features, default_batch_size)

    def serving_input_receiver_fn() -> ServingInputReceiver:
        records = Feature((default_batch_size,), "string")
        return ServingInputReceiver(of_features().features, {RECEIVER: records}, transforms=(ParseExample(parsed),))

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
