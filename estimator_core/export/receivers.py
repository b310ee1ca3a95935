"""What a served model receives, and what of it enters model_fn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export.features import Feature, feature_of

SINGLE_FEATURE, SINGLE_RECEIVER = "feature", "input"


@dataclass(frozen=True)
class ServingInputReceiver:
    """The features of a request.

    Args:
        features: `Feature`s (or example arrays) that model_fn gets, by name; a single one is named "feature".
        receiver_tensors: what the client sends, by name; default: the features. A single one is named "input".
        receiver_tensors_alternatives: further receivers by name; each maps to a subset of `receiver_tensors`.
        transforms: `HostTransform`s that make the features from what the client sends (raw signatures).

    Raises:
        ArgumentError, ArgumentTypeError: for names and values that cannot be used.

    Example:
        >>> ServingInputReceiver({"x": Feature((None, 2))}).receiver_tensors
        {'x': Feature(shape=(None, 2), dtype='float32')}

    Source: `tf.estimator.export.ServingInputReceiver`.
    """

    features: Any
    receiver_tensors: Any = None
    receiver_tensors_alternatives: Mapping[str, Any] | None = None
    _: KW_ONLY
    transforms: Sequence[Any] = ()

    def __post_init__(self) -> None:
        features = _named(self.features, SINGLE_FEATURE, "features", integers=True)
        object.__setattr__(self, "features", features)
        receivers = features if self.receiver_tensors is None else _named(self.receiver_tensors, SINGLE_RECEIVER, "receiver_tensors", integers=False)
        object.__setattr__(self, "receiver_tensors", receivers)
        for name, alternative in (self.receiver_tensors_alternatives or {}).items():
            _named(alternative, SINGLE_RECEIVER, f"receiver_tensors_alternatives[{name!r}]", integers=False)

    @property
    def model_features(self) -> Any:
        """What model_fn gets: the dict of features."""
        return self.features


@dataclass(frozen=True)
class TensorServingInputReceiver(ServingInputReceiver):
    """A receiver for a model_fn whose features are one bare array."""

    @property
    def model_features(self) -> Any:
        """What model_fn gets: the array itself."""
        return self.features[SINGLE_FEATURE]

    def __post_init__(self) -> None:
        if isinstance(self.features, Mapping):
            raise ArgumentTypeError("TensorServingInputReceiver: features must be one Feature or array; use ServingInputReceiver for a dict.")
        if self.receiver_tensors is None:
            object.__setattr__(self, "receiver_tensors", self.features)
        super().__post_init__()


def build_raw_serving_input_receiver_fn(features: Mapping[str, Any], default_batch_size: int | None = None) -> Callable[[], ServingInputReceiver]:
    """A serving_input_receiver_fn for requests that carry the features themselves.

    Args:
        features: `Feature`s, or example arrays whose first axis is the batch, by name.
        default_batch_size: a fixed batch size; None: any.

    Example:
        >>> build_raw_serving_input_receiver_fn({"x": Feature((None, 2))})().features
        {'x': Feature(shape=(None, 2), dtype='float32')}

    Source: `tf.estimator.export.build_raw_serving_input_receiver_fn`.
    """
    if not isinstance(features, Mapping):
        raise ArgumentTypeError(f"features must be a dict of ec.export.Feature by name, given: {features!r}.")
    if default_batch_size is not None and (isinstance(default_batch_size, bool) or not isinstance(default_batch_size, int) or default_batch_size < 1):
        raise ArgumentError(f"default_batch_size must be a positive int or None, given: {default_batch_size!r}.")
    fixed = {name: _with_batch(feature_of(value), default_batch_size) for name, value in features.items()}

    def serving_input_receiver_fn() -> ServingInputReceiver:
        return ServingInputReceiver(fixed)

    return serving_input_receiver_fn


def _with_batch(feature: Feature, batch_size: int | None) -> Feature:
    return feature if batch_size is None or not feature.shape else Feature((batch_size, *feature.shape[1:]), feature.dtype)


def _named(value: Any, single: str, what: str, *, integers: bool) -> dict[Any, Feature]:
    named = dict(value) if isinstance(value, Mapping) else {single: value}
    if not named:
        raise ArgumentError(f"{what} must not be empty.")
    for name in named:
        if not isinstance(name, str) and not (integers and isinstance(name, int)):
            raise ArgumentError(f"{what}: keys must be strings, given: {name!r}.")
    return {name: feature_of(item) for name, item in named.items()}
