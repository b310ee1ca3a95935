"""Which signatures an EstimatorSpec has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core.errors import ExportError
from estimator_core.export.outputs import ClassificationOutput, EvalOutput, PredictOutput, RegressionOutput
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec

SERVING_DEFAULT = "serving_default"
_METHODS: dict[type, str] = {PredictOutput: "predict", ClassificationOutput: "classify", RegressionOutput: "regress", EvalOutput: "eval"}


def signature_outputs(spec: EstimatorSpec) -> dict[str, dict[str, Any]]:
    """The arrays of every signature of a spec, by signature and output name; traceable.

    PREDICT: `export_outputs`, or the predictions as "serving_default"; one output of another name becomes the default too. EVAL and TRAIN: one
    signature named like the mode, with the loss and the predictions.

    Raises:
        ExportError: several outputs and none of them the default.

    Source: `tensorflow_estimator/python/estimator/model_utils/export_utils.py`.
    """
    if spec.mode != ModeKeys.PREDICT:
        outputs = EvalOutput(loss=spec.loss, predictions=spec.predictions)
        return {spec.mode: {name: value for name, value in _eval_outputs(outputs).items()}}
    if not spec.export_outputs:
        return {SERVING_DEFAULT: _outputs(PredictOutput(spec.predictions))}
    named = dict(spec.export_outputs)
    if SERVING_DEFAULT not in named:
        if len(named) > 1:
            raise ExportError(
                f"Multiple `export_outputs` were provided, but none of them are specified as the default. Do this by naming one of them with {SERVING_DEFAULT!r}. Given: {sorted(named)}."
            )
        named[SERVING_DEFAULT] = next(iter(named.values()))
    return {name: _outputs(value) for name, value in named.items()}


def signature_methods(spec: EstimatorSpec) -> dict[str, str]:
    """What kind each signature is: "predict", "classify", "regress", or the mode."""
    if spec.mode != ModeKeys.PREDICT:
        return {spec.mode: spec.mode}
    named = dict(spec.export_outputs or {SERVING_DEFAULT: PredictOutput(spec.predictions)})
    named.setdefault(SERVING_DEFAULT, next(iter(named.values())))
    return {name: _METHODS.get(type(value), "predict") for name, value in named.items()}


def _outputs(value: Any) -> dict[str, Any]:
    if not isinstance(value, (PredictOutput, ClassificationOutput, RegressionOutput)):
        raise ExportError(f"export_outputs: values must be ec.export.PredictOutput, ClassificationOutput or RegressionOutput, given: {value!r}.")
    outputs = value.outputs if isinstance(value, PredictOutput) else value.outputs()
    if not isinstance(outputs, Mapping):
        outputs = {"output": outputs}
    return {_name(name): array for name, array in outputs.items()}


def _eval_outputs(value: EvalOutput) -> dict[str, Any]:
    predictions = value.predictions if isinstance(value.predictions, Mapping) else {} if value.predictions is None else {"predictions": value.predictions}
    return {"loss": value.loss, **{_name(name): array for name, array in predictions.items()}}


def _name(name: Any) -> str:
    """Names of outputs are strings; the tuples of a MultiHead are joined."""
    return name if isinstance(name, str) else "/".join(map(str, name)) if isinstance(name, tuple) else str(name)
