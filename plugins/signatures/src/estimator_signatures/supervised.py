"""Receivers of exported TRAIN and EVAL signatures: features and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from estimator_core.errors import ArgumentError
from estimator_core.export import Feature, ServingInputReceiver, named_features
from estimator_core.inputs import open_input

if TYPE_CHECKING:
    from estimator_core.inputs import Batch

SINGLE_LABEL = "label"


@dataclass(frozen=True)
class SupervisedInputReceiver(ServingInputReceiver):
    """The features and labels of a request to a TRAIN or EVAL signature.

    Args:
        features: the `Feature`s (or example arrays) that model_fn receives, by name. A single one without a name is
            passed as it is, and is named "feature".
        labels: the same for the labels. A single one without a name is named "label".
        receiver_tensors: see `ServingInputReceiver`. Default: the features and the labels.
        receiver_tensors_alternatives, transforms: see `ServingInputReceiver`.

    Attributes:
        bare, bare_labels: whether model_fn receives the single feature, or label, itself instead of a dict.
        examples: the example arrays by name. Without example arrays, it is empty.

    Raises:
        ArgumentError, ArgumentTypeError: a name or value is invalid, or a name is both a feature and a label.

    Example:
        >>> from estimator_core.export import Feature
        >>> receiver = SupervisedInputReceiver({"x": Feature((None, 2))}, labels=Feature((None,), "int32"))
        >>> sorted(receiver.receiver_tensors)
        ['label', 'x']

    Source: `tensorflow_estimator.python.estimator.export.export.SupervisedInputReceiver`.
    """

    _: KW_ONLY
    labels: Any = field(default=None)  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    # pyright sees the base class's property, which this field replaces.
    bare: bool = field(init=False, default=False)  # pyright: ignore[reportIncompatibleMethodOverride]
    bare_labels: bool = field(init=False, default=False)
    #: The example arrays by name. A transform of labels may refuse all other values.
    examples: Mapping[Any, Any] = field(init=False, default_factory=dict[Any, Any])

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", _examples(self.features, "feature") | _examples(self.labels, SINGLE_LABEL))
        object.__setattr__(self, "bare", not isinstance(self.features, Mapping))
        object.__setattr__(self, "bare_labels", not isinstance(self.labels, Mapping | None))
        labels = {} if self.labels is None else named_features(self.labels, SINGLE_LABEL, "labels", integers=True)
        object.__setattr__(self, "labels", labels)
        super().__post_init__()
        both = sorted(set(map(str, self.features)) & set(map(str, labels)))
        if both:
            raise ArgumentError(
                f"SupervisedInputReceiver: {both} are names of features and of labels; rename one of them."
            )
        if self.receiver_tensors is self.features:
            object.__setattr__(self, "receiver_tensors", {**self.features, **labels})


def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: object
) -> Callable[[], SupervisedInputReceiver]:
    """Returns a receiver function for TRAIN and EVAL exports.

    One batch of an input_fn determines names, shapes and dtypes.

    Args:
        input_fn: returns `(features, labels)` batches.
        input_fn_args: the arguments of input_fn, by name.

    Example:
        >>> import numpy as np
        >>> from estimator_core.inputs import numpy_input_fn
        >>> batches = numpy_input_fn(
        ...     {"x": np.zeros((4, 2), np.float32)}, np.zeros(4, np.int32), batch_size=2, shuffle=False
        ... )
        >>> build_supervised_input_receiver_fn_from_input_fn(batches)().labels
        {'label': Feature(shape=(None,), dtype='int32')}

    Source: `tensorflow_estimator.python.estimator.export.export.build_supervised_input_receiver_fn_from_input_fn`.
    """

    def receiver_fn() -> SupervisedInputReceiver:
        def bound() -> Any:
            return input_fn(**input_fn_args)

        source = open_input(bound if input_fn_args else input_fn, mode="eval")
        try:
            batch = next(source)
        finally:
            source.close()
        features, labels = _with_text(batch)
        if labels is None:
            raise ArgumentError("input_fn returns no labels, which TRAIN and EVAL signatures need.")
        return SupervisedInputReceiver(features, labels=labels)

    return receiver_fn


def _with_text(batch: Batch) -> tuple[Any, Any]:
    """Returns features and labels together with those that stay on the host. A batch stores these separately."""
    features, labels = {}, {}
    for key, text in batch.host.items():
        part, _, name = key.partition("/")
        if part == "labels" and (name or batch.labels is None):
            labels[name] = text
        else:
            features[key] = text
    return _merged(batch.features, features, "features"), _merged(batch.labels, labels, "")


def _merged(numbers: Any, text: dict[str, Any], bare: str) -> Any:
    if not text:
        return numbers
    return text[bare] if not isinstance(numbers, Mapping) and set(text) == {bare} else {**(numbers or {}), **text}


def _examples(given: object, single: str) -> dict[Any, Any]:
    named: Mapping[Any, Any] = given if isinstance(given, Mapping) else {single: given}
    return {name: value for name, value in named.items() if not isinstance(value, Feature) and value is not None}
