"""The settings with which a Keras model was compiled, as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimator_canned_tabular.keras_models.warnings import reading_keras
from estimator_core.errors import ArgumentError

#: The name of the output of a subclass of keras.Model, which has no name for it.
UNNAMED = "output_1"
#: The message about a subclass with other outputs.
ONE_OUTPUT = (
    "A subclass of keras.Model with several outputs, or with a name for one, is not supported; make it functional"
)

#: A function of labels, predictions, and weights or None.
Loss = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class CompiledMetric:
    """A metric of one output of the model.

    Attributes:
        compute: a function of numpy labels and predictions, and of weights if there are any.
        output: the name of the output.
        weighted: whether the metric uses the weights.
    """

    compute: Callable[..., float]
    output: str
    weighted: bool


@dataclass(frozen=True)
class CompiledModel:
    """The loss and the metrics of a Keras model.

    Attributes:
        outputs: the names of the outputs.
        losses: the loss of each output, with its weight.
        metrics: the metrics by name.
    """

    outputs: tuple[str, ...]
    losses: Mapping[str, tuple[Loss, float]]
    metrics: Mapping[str, CompiledMetric]

    @classmethod
    def of(cls, model: Any, renamed: Mapping[str, str]) -> CompiledModel:
        """Reads a compiled model.

        Raises:
            ArgumentError: the model is not compiled, or a name in `renamed` is not one of its metrics.
        """
        if not getattr(model, "compiled", False):
            raise ArgumentError(
                "The given keras model has not been compiled yet. Please compile the model with `model.compile()` "
                "before calling `model_to_estimator()`."
            )
        import keras

        with reading_keras():
            config = model.get_compile_config() or {}
        outputs = tuple(getattr(model, "output_names", None) or ())
        if not outputs and isinstance(model, keras.Sequential):  # its only output has the name of the last layer
            outputs = (model.layers[-1].name,)
        if not outputs:
            outputs = (UNNAMED,)
            _check_subclass(config)
        losses = _by_output(keras.saving.deserialize_keras_object(config.get("loss")), outputs)
        weights = _by_output(config.get("loss_weights"), outputs)
        metrics, weighted = (
            _by_output(keras.saving.deserialize_keras_object(config.get(kind)), outputs)
            for kind in ("metrics", "weighted_metrics")
        )
        made = {
            name: (_loss(losses[name]), 1.0 if weights.get(name) is None else float(weights[name]))
            for name in outputs
            if losses.get(name) is not None
        }
        if not made:
            raise ArgumentError("The given keras model was compiled without a loss.")
        return cls(outputs, made, _metrics(outputs, metrics, weighted, renamed))

    def total_loss(self, labels: Mapping[str, Any], predictions: Mapping[str, Any], weights: Any = None) -> Any:
        """Returns the weighted sum of the losses of all outputs.

        Args:
            labels: the labels by output.
            predictions: the predictions by output.
            weights: float32[batch], the weight of each example in every loss; None: equal weights.
        """
        return sum(part * loss(labels[name], predictions[name], weights) for name, (loss, part) in self.losses.items())


def _check_subclass(config: Mapping[str, Any]) -> None:
    """Refuses a subclass that was compiled for anything but one output without a name."""
    for kind in ("loss", "loss_weights", "metrics", "weighted_metrics"):
        given: Any = config.get(kind)
        parts: list[Any] = list(given) if isinstance(given, (Mapping, list, tuple)) else []
        if isinstance(given, Mapping):
            other = "class_name" not in parts and parts != [UNNAMED]  # a serialised object is a dict, too
        else:
            other = kind.startswith("loss") and len(parts) > 1
        if other:
            raise ArgumentError(f"{ONE_OUTPUT}. The given keras model was compiled with {kind} for {parts}.")


def _by_output(given: Any, outputs: Sequence[str]) -> dict[str, Any]:
    """Returns an argument of compile() by output. It may be one value for all, a list, or a dict."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, (list, tuple)) and len(outputs) > 1:
        return dict(zip(outputs, given, strict=True))
    return dict.fromkeys(outputs, given) if len(outputs) == 1 or not isinstance(given, (list, tuple)) else {}


def _loss(given: Any) -> Loss:
    import keras

    loss: Any = keras.losses.get(given)
    if isinstance(loss, keras.Loss):
        return lambda labels, predictions, weights: loss(labels, predictions, sample_weight=weights)

    def mean(labels: Any, predictions: Any, weights: Any) -> Any:
        values = loss(_fitted(labels, predictions), predictions)
        return jnp.mean(values if weights is None else values * weights.reshape(-1, *[1] * (values.ndim - 1)))

    return mean


def _fitted(labels: Any, predictions: Any) -> Any:
    """Returns the labels with a last axis of size 1 if the predictions have one."""
    fits = labels.ndim == predictions.ndim - 1 and predictions.shape[-1] == 1
    return labels[..., None] if fits else labels


def _metrics(
    outputs: Sequence[str], given: Mapping[str, Any], weighted: Mapping[str, Any], renamed: Mapping[str, str]
) -> dict[str, CompiledMetric]:
    found: dict[str, CompiledMetric] = {}
    plain: set[str] = set()
    for counts, kind in ((False, given), (True, weighted)):
        for output in outputs:
            for one in _listed(kind.get(output)):
                name = one if isinstance(one, str) else one.name
                key = name if len(outputs) == 1 else f"{output}_{name}"
                if counts and key in plain:  # the name that Keras uses for the second one of a name
                    key = f"weighted_{name}" if len(outputs) == 1 else f"{output}_weighted_{name}"
                plain.add(key)
                found[renamed.get(key, key)] = CompiledMetric(compute=_metric(one), output=output, weighted=counts)
    unknown = set(renamed) - {key for key in renamed if renamed[key] in found}
    if unknown:
        raise ArgumentError(f"metric_names_map names {sorted(unknown)}, and the metrics are {sorted(found)}.")
    return found


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def _metric(given: Any) -> Callable[..., float]:
    import keras

    def computed(labels: np.ndarray, predictions: np.ndarray, weights: np.ndarray | None = None) -> float:
        made = _accuracy(given, labels, predictions)
        metric: Any = keras.metrics.get(made) if isinstance(made, str) else type(made).from_config(made.get_config())
        if not isinstance(metric, keras.Metric):
            metric = keras.metrics.MeanMetricWrapper(metric)
        metric.update_state(labels, predictions, sample_weight=weights)
        result: Any = metric.result()
        return float(result)

    return computed


def _accuracy(given: Any, labels: np.ndarray, predictions: np.ndarray) -> Any:
    """Returns the accuracy that Keras selects for the shapes of the arrays."""
    if given not in ("accuracy", "acc"):
        return given
    if predictions.shape[-1] == 1:
        return "binary_accuracy"
    sparse = labels.ndim < predictions.ndim or labels.shape[-1] == 1
    return "sparse_categorical_accuracy" if sparse else "categorical_accuracy"
