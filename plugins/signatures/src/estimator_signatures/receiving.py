"""The features of a request, and the features and labels that they become in model_fn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError, ExportError, InputError
from estimator_core.export import Feature, FitsTraining, Rename, ServingInputReceiver
from estimator_core.inputs import HostTransform, apply_transforms
from estimator_core.modes import ModeKeys
from estimator_signatures.supervised import SupervisedInputReceiver

_log = logging.getLogger("estimator_core")
#: The name for transforms of labels that are a single array.
_LABELS = "labels"
#: The texts and numbers of a batch that shows the form of results. Some columns treat empty texts or zeros as no steps,
#: and other sequences of the example then differ in length.
_PROBES = (("", 0), ("0", 0), ("0", 1))
_ORDER = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)


def received_modes(
    receivers: Mapping[str, Callable[[], Any]], seen: Mapping[str, Mapping[str, Any]]
) -> dict[str, ServingInputReceiver]:
    """Returns the receiver of each mode, in the order of the modes.

    Args:
        receivers: the functions that return the receivers, by mode.
        seen: the facts that training recorded about features: "places" and "dtype" by name.

    Raises:
        ArgumentError: there is no mode, or a mode is unknown.
        ArgumentTypeError: a function does not return a receiver.
    """
    received: dict[str, ServingInputReceiver] = {
        mode: _receiver(mode, receivers[mode], seen) for mode in _ORDER if mode in receivers
    }
    if not received or len(received) != len(receivers):
        raise ArgumentError(f"experimental_mode must be one of ModeKeys, given: {sorted(receivers)}.")
    return received


def entering(
    receiver: ServingInputReceiver, host_transforms: Sequence[HostTransform], label_transforms: Sequence[HostTransform]
) -> tuple[Mapping[Any, Feature], Mapping[Any, Feature]]:
    """Returns the features and labels that model_fn receives, by its own keys.

    Args:
        receiver: the receiver of the requests.
        host_transforms: the transforms of the Estimator for features.
        label_transforms: the transforms of the Estimator for labels.
    """
    return features_after(host_transforms, receiver.features, _examples(receiver)), _labels(receiver, label_transforms)


def client_transforms(serving: ServingInputReceiver) -> Sequence[HostTransform]:
    """Returns the transforms from client inputs to the features: those of the receiver, or new names.

    Args:
        serving: the receiver.

    Raises:
        ExportError: the receiver has no transforms, and its features are not among the received ones.

    Example:
        >>> column = Feature((None, 2))
        >>> [one.config() for one in client_transforms(ServingInputReceiver({"x": column}, {"sent": column}))]
        [{'names': {'sent': 'x'}}]
    """
    return serving.transforms or renaming(serving.receiver_tensors, serving.features)


def renaming(received: Mapping[Any, Feature], features: Mapping[Any, Feature]) -> Sequence[HostTransform]:
    """Returns the transforms of a receiver without transforms: none, or a `Rename` from received arrays to features.

    Raises:
        ExportError: a feature is not among the received ones, or several received ones could be the feature, or one
            received one would be several features.
    """
    names: dict[str, str] = {}
    for name, feature in features.items():
        same = [key for key, value in received.items() if value is feature] or [key for key in received if key == name]
        if not same:
            raise ExportError(
                f"Feature {name!r} cannot be made from the receiver_tensors {sorted(map(str, received))}: give the "
                "same Feature object "
                "under its new name, or transforms that make it."
            )
        old = name if name in same else same[0]  # one Feature object may describe several
        if str(old) in names:
            raise ExportError(
                f"Features {names[str(old)]!r} and {str(name)!r} would both be made from the receiver tensor {old!r}. "
                "Give each feature a receiver tensor with the same Feature object, or transforms that make it."
            )
        if old != name and len(same) > 1:
            raise ExportError(
                f"Feature {name!r} and the receiver_tensors {sorted(map(str, same))} are one Feature object, so it is "
                "unclear which of them it is. Give each receiver tensor and its feature their own object, or use "
                "transforms."
            )
        names[str(old)] = str(name)
    return (Rename(names),) if any(old != new for old, new in names.items()) else ()


def features_after(
    transforms: Sequence[HostTransform],
    features: Mapping[Any, Feature],
    examples: Mapping[Any, object] = MappingProxyType({}),
) -> dict[Any, Feature]:
    """Returns the features after host transforms, found with a batch of zeros and empty strings.

    Args:
        transforms: the transforms, in order.
        features: the features before the transforms, by name.
        examples: the arrays of a batch, by name, that replace the zeros.

    Raises:
        ExportError: a transform refuses that batch.
    """
    if not transforms:
        return dict(features)
    known = {name: np.asarray(examples[name]) for name in features if name in examples}
    rows = next((len(value) for value in known.values() if value.ndim), 2)
    batch = {
        name: np.zeros([rows if size is None else size for size in feature.shape], _numpy(feature))
        for name, feature in features.items()
    }

    def after(text: str, number: int) -> Mapping[str, np.ndarray]:
        values = {name: text if array.dtype == object else number for name, array in batch.items()}
        filled = {name: np.full(array.shape, values[name], array.dtype) for name, array in batch.items()}
        return apply_transforms(transforms, {**filled, **known})

    found, errors = None, list[InputError]()
    for text, number in _PROBES:
        try:
            found = after(text, number)
            break
        except InputError as error:
            errors.append(error)
    if found is None:
        raise ExportError(
            "The host transforms of the Estimator failed on a batch of zeros and empty strings, which shows the form "
            "of their results. Pass the transforms to the receiver instead, with the features that they return. The "
            f"error was: {errors[0]}"
        ) from errors[0]
    batched = any(feature.shape[:1] == (None,) for feature in features.values())
    return {
        name: Feature((None if batched else array.shape[0], *array.shape[1:]), str(array.dtype))
        for name, array in found.items()
    }


def _numpy(feature: Feature) -> Any:
    return object if feature.dtype == "string" else ml_dtypes.bfloat16 if feature.dtype == "bfloat16" else feature.dtype


def _receiver(mode: str, receiver_fn: Any, seen: Mapping[str, Mapping[str, Any]]) -> ServingInputReceiver:
    if receiver_fn is None:
        raise ArgumentError("An input_receiver_fn must be defined.")
    if not callable(receiver_fn):
        raise ArgumentTypeError(
            f"serving_input_receiver_fn must be a function without arguments, given: {receiver_fn!r}."
        )
    receiver = receiver_fn()
    if not isinstance(receiver, ServingInputReceiver):
        raise ArgumentTypeError(
            f"serving_input_receiver_fn for mode {mode!r} must return an ec.export.ServingInputReceiver, given: "
            f"{type(receiver).__name__}."
        )
    if isinstance(receiver, FitsTraining):
        receiver = receiver.fitted({name: facts["places"] for name, facts in seen.items()})
    _warn_of_less(receiver, seen)
    return receiver


def _examples(receiver: ServingInputReceiver) -> Mapping[Any, Any]:
    return receiver.examples if isinstance(receiver, SupervisedInputReceiver) else {}


def _labels(receiver: ServingInputReceiver, transforms: Sequence[Any]) -> Mapping[Any, Feature]:
    """Returns the labels that model_fn receives. For transforms, a single array has the name "labels"."""
    if not isinstance(receiver, SupervisedInputReceiver) or not receiver.bare_labels:
        return features_after(transforms, receiver.labels, _examples(receiver)) if receiver.labels else {}
    ((name, feature),) = receiver.labels.items()
    examples = {_LABELS: receiver.examples[name]} if name in receiver.examples else {}
    found = features_after(transforms, {_LABELS: feature}, examples)
    return {name: found[_LABELS]} if set(found) == {_LABELS} else found


def _warn_of_less(receiver: ServingInputReceiver, seen: Mapping[str, Mapping[str, Any]]) -> None:
    """Warns of inputs that training accepted and the export refuses."""
    for name, feature in receiver.features.items():
        facts = seen.get(str(name))
        if facts is None:
            continue
        places = prod(size for size in feature.shape[1:] if size is not None)
        if places < facts["places"]:
            _log.warning(
                "The export takes %d value%s of the feature %r, but training saw examples with %d. Requests like those "
                "are refused. Give the receiver that many places.",
                places,
                "" if places == 1 else "s",
                name,
                facts["places"],
            )
        if (feature.dtype == "string") != (facts["dtype"] == "string"):
            _log.warning(
                "The export takes the feature %r as %s, but training saw %s. Requests like those are refused, or their "
                "values change. Give the receiver that type: a Feature of it, or, for tf.Examples, "
                "build_parsing_serving_input_receiver_fn with VarLenFeature(%r) in its feature_spec.",
                name,
                feature.dtype,
                facts["dtype"],
                _of_examples(facts["dtype"]),
            )


def _of_examples(dtype: str) -> str:
    """Returns the type with which a tf.Example stores values of a dtype."""
    return "string" if dtype == "string" else "float32" if "float" in dtype else "int64"
