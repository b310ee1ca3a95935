"""The contents of a request to a served model: shape and dtype of each input, and the part that model_fn receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError, is_integer


@dataclass(frozen=True)
class Feature:
    """The shape and dtype of an array that a signature accepts or returns.

    Args:
        shape: the sizes of the axes. None in the first place means a batch of any size of at least 1.
        dtype: a numpy dtype or its name, "bfloat16", or "string" for text on the host.

    Raises:
        ArgumentError, ArgumentTypeError: the shape or dtype cannot be used.

    Example:
        >>> Feature((None, 16), "float32")
        Feature(shape=(None, 16), dtype='float32')
    """

    shape: tuple[int | None, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if isinstance(self.shape, (str, int)) or not isinstance(self.shape, Sequence):
            raise ArgumentTypeError(f"Feature: shape must be a tuple such as (None, 16), given: {self.shape!r}.")
        shape = tuple(self.shape)
        if any(
            size is not None and (isinstance(size, bool) or not hasattr(size, "__index__") or size < 0)
            for size in shape
        ):
            raise ArgumentError(f"Feature: sizes must be integers >= 0, or None for the batch; given: {shape}.")
        if None in shape[1:]:
            raise ArgumentError(f"Feature: only the first size may be None (the batch); given: {shape}.")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))

    def misfit(self, shape: Sequence[int]) -> str | None:
        """Returns the remedy for an array of another shape; None if the shape fits.

        Example:
            >>> Feature((None, 16)).misfit((16,))
            'The first axis is the batch: pass a list of one for a single row.'
        """
        batched = self.shape[:1] == (None,)
        given, row = tuple(shape), self.shape[1:] if batched else self.shape
        if batched and given[1:] == row and len(given) == len(self.shape):
            return None if given[0] else "A batch has at least one row."
        if not batched:
            return None if given == row else "Pass one value, not a list." if row == () else "All sizes are fixed."
        if given == row:
            return "The first axis is the batch: pass a list of one for a single row."
        return f"The first axis is the batch; a row is {f'of shape {row}' if row else 'one value'}."


def feature_of(value: Any) -> Feature:
    """Returns the Feature of an array whose first axis is the batch, or the given Feature."""
    if isinstance(value, Feature):
        return value
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Feature((None, *value.shape[1:]) if len(value.shape) else (), str(value.dtype))
    raise ArgumentTypeError(f"Give an ec.export.Feature((None, ...), dtype) or an example array, not {value!r}.")


def _dtype_name(dtype: Any) -> str:
    if dtype in ("string", "bfloat16"):
        return dtype
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentTypeError(
            f"Feature: {dtype!r} is not a dtype. Use a numpy dtype, 'bfloat16' or 'string'."
        ) from error
    return "string" if found.kind in "USO" else found.name


SINGLE_FEATURE, SINGLE_RECEIVER = "feature", "input"


@dataclass(frozen=True)
class ServingInputReceiver:
    """The features of a request.

    Args:
        features: `Feature`s or example arrays that model_fn receives, by name. A single one is named "feature".
        receiver_tensors: the inputs that the client sends, by name. Default: the features. A single one is named
            "input". Without transforms, it contains the same `Feature` objects under the names that the client uses.
        receiver_tensors_alternatives: the alternative inputs. They are checked but not used, because array signatures
            always accept the features themselves.
        transforms: `HostTransform`s from the client's inputs to the features (for raw signatures).

    Raises:
        ArgumentError, ArgumentTypeError: a name or value cannot be used.

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
        features = named_features(self.features, SINGLE_FEATURE, "features", integers=True)
        object.__setattr__(self, "features", features)
        receivers = (
            features
            if self.receiver_tensors is None
            else named_features(self.receiver_tensors, SINGLE_RECEIVER, "receiver_tensors", integers=False)
        )
        object.__setattr__(self, "receiver_tensors", receivers)
        for name, alternative in (self.receiver_tensors_alternatives or {}).items():
            named_features(alternative, SINGLE_RECEIVER, f"receiver_tensors_alternatives[{name!r}]", integers=False)

    @property
    def bare(self) -> bool:
        """Whether model_fn receives the single feature itself instead of a dict."""
        return False

    @property
    def labels(self) -> Mapping[str, Feature]:
        """The labels that model_fn receives, by name. A serving receiver has no labels."""
        return {}


@runtime_checkable
class FitsTraining(Protocol):
    """An optional contract for a `ServingInputReceiver` whose features have as many places as there were values in
    training.
    """

    def fitted(self, places: Mapping[str, int]) -> ServingInputReceiver:
        """Returns the receiver for a model whose training examples had these numbers of values, by feature."""
        ...


@dataclass(frozen=True)
class TensorServingInputReceiver(ServingInputReceiver):
    """A receiver for a model_fn whose features are a single array."""

    @property
    def bare(self) -> bool:
        """True: model_fn receives the array itself."""
        return True

    def __post_init__(self) -> None:
        if isinstance(self.features, Mapping):
            raise ArgumentTypeError(
                "TensorServingInputReceiver: features must be one Feature or array; use ServingInputReceiver for "
                "a dict."
            )
        if self.receiver_tensors is None:
            object.__setattr__(self, "receiver_tensors", self.features)
        super().__post_init__()


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, object], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a serving_input_receiver_fn for requests that contain the features themselves.

    Args:
        features: `Feature`s, or example arrays whose first axis is the batch, by name.
        default_batch_size: the fixed batch size. None: any size.

    Example:
        >>> build_raw_serving_input_receiver_fn({"x": Feature((None, 2))})().features
        {'x': Feature(shape=(None, 2), dtype='float32')}

    Source: `tf.estimator.export.build_raw_serving_input_receiver_fn`.
    """
    if not isinstance(features, Mapping):
        raise ArgumentTypeError(f"features must be a dict of ec.export.Feature by name, given: {features!r}.")
    check_batch_size(default_batch_size)
    fixed = {name: with_batch_size(feature_of(value), default_batch_size) for name, value in features.items()}

    def serving_input_receiver_fn() -> ServingInputReceiver:
        return ServingInputReceiver(fixed)

    return serving_input_receiver_fn


def with_batch_size(feature: Feature, batch_size: int | None) -> Feature:
    """Returns the feature with a fixed batch size, if one is given."""
    return (
        feature if batch_size is None or not feature.shape else Feature((batch_size, *feature.shape[1:]), feature.dtype)
    )


def check_batch_size(batch_size: Any) -> None:
    """Refuses a value that is neither None nor a positive int."""
    if batch_size is not None and (not is_integer(batch_size) or batch_size < 1):
        raise ArgumentError(f"default_batch_size must be a positive int or None, given: {batch_size!r}.")


def named_features(value: object, single: str, what: str, *, integers: bool) -> dict[Any, Feature]:
    """Returns the features by name. A feature without a name is named `single`."""
    named = dict(value) if isinstance(value, Mapping) else {single: value}
    if not named:
        raise ArgumentError(f"{what} must not be empty.")
    for name in named:
        if not isinstance(name, str) and not (integers and isinstance(name, int)):
            raise ArgumentError(f"{what}: keys must be strings, given: {name!r}.")
    return {name: feature_of(item) for name, item in named.items()}
