"""The conversion of a compiled Keras model to an Estimator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_tabular.keras_models.compiled import ONE_OUTPUT, UNNAMED, CompiledModel
from estimator_canned_tabular.keras_models.optimizer import KerasTrainOp
from estimator_core.errors import ArgumentError, ModelFnError

#: The name of the model among the variables, for `Estimator.load_into`.
NAME = "keras"


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | os.PathLike[str] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | None = None,
    config: ec.RunConfig | None = None,
    metric_names_map: Mapping[str, str] | None = None,
    *,
    weight_column: str | None = None,
    plugins: Any = None,
) -> ec.Estimator:
    """Returns an Estimator of a compiled Keras 3 model, with its weights, loss, metrics and optimizer.

    The model itself is never changed. `estimator.load_into(keras_model, "keras")` writes the trained weights into it.
    Features are a dict by the names of the inputs, or one array. Labels are a dict by the names of the outputs, or one
    array. Metrics are computed over all predictions of an evaluation, which the host keeps in memory.

    Args:
        keras_model: a built and compiled model. Keras must run on JAX (KERAS_BACKEND=jax).
        keras_model_path: the path of a saved model, instead of keras_model.
        custom_objects: the custom objects that loading needs.
        model_dir: see `ec.Estimator`.
        config: see `ec.Estimator`.
        metric_names_map: other names for metrics, by the names that Keras uses.
        weight_column: the feature with the weight of each example, a number, as `sample_weight` of `fit`. The losses of
            all outputs and `weighted_metrics` use it. The model does not receive it, and predictions do not need it.
            None: equal weights.
        plugins: see `ec.Estimator`.

    Raises:
        ArgumentError: both models or neither are set, or the model is not built, not compiled, or of another backend.
            Also for a subclass of keras.Model that was compiled for several outputs, and for a weight_column that is
            not a name or is an input of the model.
        ModelFnError: in training or evaluation, weights are missing or are not one number per example.

    Example:
        >>> import keras
        >>> model = keras.Sequential([keras.Input((2,), name="x"), keras.layers.Dense(1)])
        >>> model.compile(optimizer="adam", loss="mse", metrics=["mae"])
        >>> estimator = model_to_estimator(model)

    Source: `tf.keras.estimator.model_to_estimator`.
    """
    if (keras_model is None) == (keras_model_path is None):
        raise ArgumentError("Either `keras_model` or `keras_model_path` needs to be provided, and not both.")
    import keras

    if keras.backend.backend() != "jax":
        raise ArgumentError(
            f"Keras runs on the backend {keras.backend.backend()!r}: set KERAS_BACKEND=jax before it is imported."
        )
    model: Any = keras_model
    if model is None:
        model = keras.saving.load_model(keras_model_path, custom_objects=custom_objects)
    if not model.built:
        raise ArgumentError(
            "The given keras model is not built, so its variables are unknown: give it an Input, or call it once on "
            "a batch."
        )
    compiled = CompiledModel.of(model, dict(metric_names_map or {}))
    inputs = [tensor.name for tensor in getattr(model, "inputs", None) or ()]  # a subclass of keras.Model has none
    stepping = KerasTrainOp(model)
    if weight_column is not None and (not isinstance(weight_column, str) or weight_column in inputs):
        raise ArgumentError(
            f"weight_column should be the name of one feature that is not an input of the model ({', '.join(inputs)}): "
            f"one number for each example, for all outputs. Given: {weight_column!r}."
        )

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        network = ec.module(model, name=NAME)
        features, weights = _apart(features, weight_column, needed=mode != ec.ModeKeys.PREDICT)
        made = network(_given(features, inputs))
        if compiled.outputs == (UNNAMED,):
            _check_unnamed(made)
        names = _named(made, compiled.outputs)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions=names)
        targets = _named(labels, compiled.outputs)
        loss = compiled.total_loss(targets, names, weights) + sum(network.losses)
        metrics: dict[str, Any] = {}
        for name, metric in compiled.metrics.items():
            more = {"weights": weights} if metric.weighted and weights is not None else {}
            arrays = {"labels": targets[metric.output], "predictions": names[metric.output], **more}
            metrics[name] = ec.metrics.on_host(metric.compute, **arrays)
        trained = [spec.name for spec in ec.trainable_variables()]
        return ec.EstimatorSpec(
            mode,
            predictions=names,
            loss=loss,
            train_op=stepping.train_op(trained) if mode == ec.ModeKeys.TRAIN else None,
            eval_metric_ops=metrics if mode == ec.ModeKeys.EVAL else None,
        )

    return ec.Estimator(model_fn, model_dir=model_dir, config=config, plugins=plugins)


def _apart(features: Any, weight_column: str | None, *, needed: bool) -> tuple[Any, Any]:
    """Returns the features of the model, and the weights float32[batch] or None."""
    if weight_column is None:
        return features, None
    if not isinstance(features, Mapping) or weight_column not in features:
        if not needed:
            return features, None
        found = sorted(features) if isinstance(features, Mapping) else "one array without a name"
        raise ModelFnError(f"The weight_column {weight_column!r} is not among the features: {found}.")
    weights = jnp.asarray(features[weight_column], jnp.float32)
    if weights.ndim == 2 and weights.shape[1] == 1:
        weights = weights[:, 0]
    if weights.ndim != 1:
        raise ModelFnError(
            f"The weight_column {weight_column!r} must have one number for each example, given: an array of shape "
            f"{weights.shape}. Apply weights of single steps or pixels in your own loss function."
        )
    return {name: array for name, array in features.items() if name != weight_column}, weights


def _given(features: Any, inputs: list[str]) -> Any:
    if not isinstance(features, Mapping) or not inputs:
        return features
    if len(inputs) == 1 and len(features) == 1:
        return next(iter(features.values()))
    missing = [name for name in inputs if name not in features]
    if missing:
        raise ModelFnError(f"The keras model has the inputs {inputs}, but the features are {sorted(features)}.")
    return features[inputs[0]] if len(inputs) == 1 else {name: features[name] for name in inputs}


def _check_unnamed(made: Any) -> None:
    """Refuses the result of a subclass unless it is one output without a name."""
    parts: list[Any] = list(made) if isinstance(made, (Mapping, list, tuple)) else []
    other = parts != [UNNAMED] if isinstance(made, Mapping) else len(parts) > 1
    if other:
        told = sorted(parts) if isinstance(made, Mapping) else f"{len(parts)} arrays"
        raise ModelFnError(f"{ONE_OUTPUT}. The `call` of the given keras model returns {told}.")


def _named(given: Any, outputs: tuple[str, ...]) -> dict[str, Any]:
    """Returns the arrays by the names of the outputs."""
    if isinstance(given, Mapping):
        if set(given) != set(outputs):
            raise ModelFnError(f"The keras model has the outputs {list(outputs)}; given: {sorted(given)}.")
        return dict(given)
    arrays = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(arrays) != len(outputs):
        raise ModelFnError(f"The keras model has the outputs {list(outputs)}; given: {len(arrays)} arrays.")
    return dict(zip(outputs, arrays, strict=True))
