"""A model that is ready to use: regression on one feature, with an estimator of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import optax

import estimator_core as ec
from estimator_core.config import RunConfig
from estimator_core.estimator import Estimator
from estimator_core.hparams import HParams
from estimator_core.model.access import get_variable, variable_scope
from estimator_core.model.warm_start import WarmStartSettings


class AcmeModelRegressor(Estimator):
    """Predicts a number from a vector with one hidden layer.

    Args:
        feature: name of the feature, float [batch, size].
        hidden_units: width of the hidden layer.
        learning_rate: of Adam.
        config: how the run is done.
        warm_start_from: an export or a checkpoint of such a model.
    """

    def __init__(
        self,
        feature: str = "x",
        hidden_units: int = 16,
        learning_rate: float = 0.05,
        config: RunConfig | None = None,
        warm_start_from: str | None = None,
    ) -> None:
        params = HParams(feature=feature, hidden_units=hidden_units, learning_rate=learning_rate)
        start = None if warm_start_from is None else WarmStartSettings(warm_start_from)
        super().__init__(_model_fn, config=config, params=params, warm_start_from=start)


def _model_fn(features: Mapping[str, Any], labels: Any, mode: str, params: HParams) -> ec.EstimatorSpec:
    x = features[params.feature]
    with variable_scope("hidden"):
        hidden = jax.nn.relu(_dense(x, params.hidden_units))
    with variable_scope("output"):
        y = _dense(hidden, 1)[:, 0]
    predictions = {"predictions": y}
    if mode == ec.ModeKeys.PREDICT:
        outputs = {"serving_default": ec.export.PredictOutput(predictions)}
        return ec.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    losses = (y - labels) ** 2
    return ec.EstimatorSpec(
        mode,
        loss=losses.mean(),
        train_op=optax.adam(params.learning_rate),
        eval_metric_ops={"average_loss": ec.metrics.mean(losses)},
    )


def _dense(x: Any, units: int) -> Any:
    kernel = get_variable("kernel", (x.shape[-1], units), jax.nn.initializers.lecun_normal())
    return x @ kernel + get_variable("bias", (units,), jax.nn.initializers.zeros)
