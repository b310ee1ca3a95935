"""The signatures of an EstimatorSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core.errors import ExportError
from estimator_core.export import ClassificationOutput, EvalOutput, PredictOutput, RegressionOutput
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec

SERVING_DEFAULT = "serving_default"
LOSS, PREDICTIONS = "loss", "predictions"
_METHODS: dict[type, str] = {
    PredictOutput: "predict",
    ClassificationOutput: "classify",
    RegressionOutput: "regress",
    EvalOutput: "eval",
}


def signature_outputs(spec: EstimatorSpec) -> dict[str, dict[str, Any]]:
    """Returns the arrays of every signature of a spec, by signature and output name. It is traceable.

    In PREDICT, the signatures are those of `export_outputs`, or the predictions as "serving_default". A single output
    with another name is also the default. EVAL and TRAIN have one signature, named like the mode, with "loss" and
    "predictions" or "predictions/<name>".

    Raises:
        ExportError: there are several outputs and none of them is the default.

    Source: `tensorflow_estimator/python/estimator/model_utils/export_utils.py`.
    """
    if spec.mode != ModeKeys.PREDICT:
        return {spec.mode: _eval_outputs(EvalOutput(loss=spec.loss, predictions=spec.predictions))}
    return {name: _outputs(value) for name, value in _serving_outputs(spec).items()}


def signature_methods(spec: EstimatorSpec) -> dict[str, str]:
    """Returns the kind of each signature: "predict", "classify", "regress", or the mode."""
    if spec.mode != ModeKeys.PREDICT:
        return {spec.mode: spec.mode}
    return {name: _METHODS[type(value)] for name, value in _serving_outputs(spec).items()}


def signature_class_names(spec: EstimatorSpec) -> dict[str, tuple[str, ...]]:
    """Returns the class names of every signature that has class names."""
    if spec.mode != ModeKeys.PREDICT:
        return {}
    classified = {
        name: value.class_names
        for name, value in _serving_outputs(spec).items()
        if isinstance(value, (ClassificationOutput, PredictOutput))
    }
    return {name: tuple(names) for name, names in classified.items() if names}


def _serving_outputs(spec: EstimatorSpec) -> dict[str, Any]:
    if not spec.export_outputs:
        return {SERVING_DEFAULT: _predicted(spec.predictions)}
    named = dict(spec.export_outputs)
    if SERVING_DEFAULT not in named:
        if len(named) > 1:
            raise ExportError(
                "Multiple `export_outputs` were provided, but none of them are specified as the default. "
                f"Do this by naming one of them with {SERVING_DEFAULT!r}. Given: {sorted(named)}."
            )
        named[SERVING_DEFAULT] = next(iter(named.values()))
    return named


def _predicted(predictions: object) -> PredictOutput:
    return PredictOutput(
        {_name(name): value for name, value in predictions.items()} if isinstance(predictions, Mapping) else predictions
    )


def _outputs(value: object) -> dict[str, Any]:
    if not isinstance(value, (PredictOutput, ClassificationOutput, RegressionOutput)):
        raise ExportError(
            "export_outputs: values must be ec.export.PredictOutput, ClassificationOutput or RegressionOutput, "
            f"given: {value!r}."
        )
    return {_name(name): array for name, array in value.outputs.items()}


def _eval_outputs(value: EvalOutput) -> dict[str, Any]:
    return {**_prefixed(LOSS, value.loss), **_prefixed(PREDICTIONS, value.predictions)}


def _prefixed(prefix: str, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return {prefix: value}
    return {
        name if name.startswith(prefix) else f"{prefix}/{name}": array
        for name, array in ((_name(name), array) for name, array in value.items())
    }


def _name(name: object) -> str:
    """Returns the name of an output as a string. The tuples of a MultiHead are joined."""
    return "/".join(map(str, name)) if isinstance(name, tuple) else str(name)
