"""What a Keras model was compiled with, as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimator_canned_tabular.keras_models.warnings import reading_keras
from estimator_core.errors import ArgumentError

Loss = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class CompiledModel:
    """A Keras model's loss and metrics.

    Attributes:
        outputs: names of the outputs.
        losses: a loss for each output, with its weight.
        metrics: metrics by name: a function of numpy labels and predictions, and the output it is of.
    """

    outputs: tuple[str, ...]
    losses: Mapping[str, tuple[Loss, float]]
    metrics: Mapping[str, tuple[Callable[..., float], str]]

    @classmethod
    def of(cls, model: Any, renamed: Mapping[str, str]) -> CompiledModel:
        """Reads a compiled model.

        Raises:
            ArgumentError: it is not compiled, or a name is none of its metrics.
        """
        if not getattr(model, "compiled", False):
            raise ArgumentError(
                "The given keras model has not been compiled yet. Please compile the model with `model.compile()` "
                "before calling `model_to_estimator()`."
            )
        import keras

        with reading_keras():
            config = model.get_compile_config() or {}
        # A Sequential has no names for its one output: it is that of the last layer.
        outputs = tuple(getattr(model, "output_names", None) or [model.layers[-1].name])
        losses = _by_output(keras.saving.deserialize_keras_object(config.get("loss")), outputs)
        weights = _by_output(config.get("loss_weights"), outputs)
        metrics = _by_output(keras.saving.deserialize_keras_object(config.get("metrics")), outputs)
        made = {
            name: (_loss(losses[name]), 1.0 if weights.get(name) is None else float(weights[name]))
            for name in outputs
            if losses.get(name) is not None
        }
        if not made:
            raise ArgumentError("The given keras model was compiled without a loss.")
        return cls(outputs, made, _metrics(outputs, metrics, renamed))

    def total_loss(self, labels: Mapping[str, Any], predictions: Mapping[str, Any]) -> Any:
        """The weighted sum of the losses of all outputs."""
        return sum(weight * loss(labels[name], predictions[name]) for name, (loss, weight) in self.losses.items())


def _by_output(given: Any, outputs: Sequence[str]) -> dict[str, Any]:
    """What compile() was given, by output: one for all, a list, or a dict."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, (list, tuple)) and len(outputs) > 1:
        return dict(zip(outputs, given, strict=True))
    return dict.fromkeys(outputs, given) if len(outputs) == 1 or not isinstance(given, (list, tuple)) else {}


def _loss(given: Any) -> Loss:
    import keras

    loss: Any = keras.losses.get(given)
    if isinstance(loss, keras.Loss):
        return lambda labels, predictions: loss(labels, predictions)
    return lambda labels, predictions: jnp.mean(loss(_fitted(labels, predictions), predictions))


def _fitted(labels: Any, predictions: Any) -> Any:
    """Labels with the last axis of size 1 that predictions have."""
    fits = labels.ndim == predictions.ndim - 1 and predictions.shape[-1] == 1
    return labels[..., None] if fits else labels


def _metrics(
    outputs: Sequence[str], given: Mapping[str, Any], renamed: Mapping[str, str]
) -> dict[str, tuple[Callable[..., float], str]]:
    found: dict[str, tuple[Callable[..., float], str]] = {}
    for output in outputs:
        listed = given.get(output)
        for one in _listed(listed):
            name = one if isinstance(one, str) else one.name
            key = name if len(outputs) == 1 else f"{output}_{name}"
            found[renamed.get(key, key)] = (_metric(one), output)
    unknown = set(renamed) - {key for key in renamed if renamed[key] in found}
    if unknown:
        raise ArgumentError(f"metric_names_map names {sorted(unknown)}, and the metrics are {sorted(found)}.")
    return found


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def _metric(given: Any) -> Callable[..., float]:
    import keras

    def computed(labels: np.ndarray, predictions: np.ndarray) -> float:
        made = _accuracy(given, labels, predictions)
        metric: Any = keras.metrics.get(made) if isinstance(made, str) else type(made).from_config(made.get_config())
        if not isinstance(metric, keras.Metric):
            metric = keras.metrics.MeanMetricWrapper(metric)
        metric.update_state(labels, predictions)
        result: Any = metric.result()
        return float(result)

    return computed


def _accuracy(given: Any, labels: np.ndarray, predictions: np.ndarray) -> Any:
    """Keras' choice of an accuracy by the shape of the arrays."""
    if given not in ("accuracy", "acc"):
        return given
    if predictions.shape[-1] == 1:
        return "binary_accuracy"
    sparse = labels.ndim < predictions.ndim or labels.shape[-1] == 1
    return "sparse_categorical_accuracy" if sparse else "categorical_accuracy"
