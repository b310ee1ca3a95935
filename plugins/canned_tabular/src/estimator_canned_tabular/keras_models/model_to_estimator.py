"""`model_to_estimator`: a compiled Keras model as an Estimator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.keras_models.compiled import CompiledModel
from estimator_canned_tabular.keras_models.optimizer import KerasTrainOp
from estimator_core.errors import ArgumentError, ModelFnError

#: The name of the model among the variables; what `Estimator.load_into` takes.
NAME = "keras"


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | os.PathLike[str] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | None = None,
    config: ec.RunConfig | None = None,
    metric_names_map: Mapping[str, str] | None = None,
    *,
    plugins: Any = None,
) -> ec.Estimator:
    """An Estimator of a compiled Keras 3 model: its weights, loss, metrics and optimizer are carried over.

    The model itself is never changed; `estimator.load_into(keras_model, "keras")` writes the trained weights into it.
    Features are a dict by the names of the inputs, or one array; labels a dict by the names of the outputs, or one
    array. Metrics are computed over all predictions of an evaluation, which the host holds.

    Args:
        keras_model: a built and compiled model; Keras must run on JAX (KERAS_BACKEND=jax).
        keras_model_path: a saved one instead.
        custom_objects: what loading it needs.
        model_dir: as for `ec.Estimator`.
        config: as for `ec.Estimator`.
        metric_names_map: other names for metrics, by the names that Keras gives.
        plugins: as for `ec.Estimator`.

    Raises:
        ArgumentError: both or none given, or a model that is not built, not compiled, or of another backend.

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
        raise ArgumentError("The given keras model is not built: give it an Input, or call it once.")
    compiled = CompiledModel.of(model, dict(metric_names_map or {}))
    inputs = [tensor.name for tensor in model.inputs]
    stepping = KerasTrainOp(model)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        network = ec.module(model, name=NAME)
        names = _named(network(_given(features, inputs)), compiled.outputs)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions=names)
        targets = _named(labels, compiled.outputs)
        loss = compiled.total_loss(targets, names) + sum(network.losses)
        metrics = {
            name: ec.metrics.on_host(metric, labels=targets[output], predictions=names[output])
            for name, (metric, output) in compiled.metrics.items()
        }
        trained = [spec.name for spec in ec.trainable_variables()]
        return ec.EstimatorSpec(
            mode,
            predictions=names,
            loss=loss,
            train_op=stepping.train_op(trained) if mode == ec.ModeKeys.TRAIN else None,
            eval_metric_ops=metrics if mode == ec.ModeKeys.EVAL else None,
        )

    return ec.Estimator(model_fn, model_dir=model_dir, config=config, plugins=plugins)


def _given(features: Any, inputs: list[str]) -> Any:
    if not isinstance(features, Mapping):
        return features
    if len(inputs) == 1 and len(features) == 1:
        return next(iter(features.values()))
    missing = [name for name in inputs if name not in features]
    if missing:
        raise ModelFnError(f"The keras model has the inputs {inputs}; the features are {sorted(features)}.")
    return features[inputs[0]] if len(inputs) == 1 else {name: features[name] for name in inputs}


def _named(given: Any, outputs: tuple[str, ...]) -> dict[str, Any]:
    """Arrays by the names of the outputs."""
    if isinstance(given, Mapping):
        if set(given) != set(outputs):
            raise ModelFnError(f"The keras model has the outputs {list(outputs)}; given: {sorted(given)}.")
        return dict(given)
    arrays = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(arrays) != len(outputs):
        raise ModelFnError(f"The keras model has the outputs {list(outputs)}; given: {len(arrays)} arrays.")
    return dict(zip(outputs, arrays, strict=True))
