"""The head for numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError, check_count, is_integer
from estimator_core.export import PredictOutput, RegressionOutput
from estimator_core.metrics import mean
from estimator_heads.checks import check_labels, check_logits, check_prediction_keys
from estimator_heads.data.number_labels import NumberLabels
from estimator_heads.keys import (
    DEFAULT_SERVING_KEY,
    PREDICT_SERVING_KEY,
    REGRESS_SERVING_KEY,
    MetricKeys,
    PredictionKeys,
)
from estimator_heads.losses import squared_error
from estimator_heads.per_example_head import Examples, PerExampleHead
from estimator_heads.reduction import Reduction

if TYPE_CHECKING:
    from estimator_core.export import ExportOutput
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule
    from estimator_heads.loss_function import LossFn


class RegressionHead(PerExampleHead):
    """Predicts one or several numbers with the squared error of each.

    Predictions: `predictions`, and `logits` if there is an inverse link function.

    Args:
        label_dimension: the number of labels per example.
        weight_column: the name of the weight feature ([D0, ..., DN], [.., 1] or [.., label_dimension]), or a numeric
            column.
        loss_reduction: one of `Reduction`. The mean is over examples and outputs.
        loss_fn: a function of (labels, logits[, features, loss_reduction]) that returns losses [D0, ..., DN,
            label_dimension].
        inverse_link_fn: a function from logits to predictions.
        name: the suffix of metric and summary keys.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> head = RegressionHead()
        >>> float(head.loss(labels=np.array([[43.0], [44.0]]), logits=np.array([[45.0], [41.0]])))
        6.5

    Source: `tf.estimator.RegressionHead`.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        loss_fn: LossFn | None = None,
        inverse_link_fn: Callable[[jax.Array], jax.Array] | None = None,
        name: str | None = None,
    ) -> None:
        if is_integer(label_dimension) and label_dimension < 1:  # the words of tf.estimator
            raise ArgumentError(f"Invalid label_dimension {label_dimension}. It must be at least 1.")
        check_count("label_dimension", label_dimension)
        super().__init__(
            name=name,
            logits_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            loss_fn=loss_fn,
            loss_dimension=label_dimension,
        )
        self._inverse_link_fn = inverse_link_fn

    def process_labels(self, labels: Any, logits: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Returns the labels as float32 [D0, ..., DN, label_dimension]."""
        return check_labels(labels, logits, self.logits_dimension).astype(jnp.float32), None

    def label_rules(self) -> dict[str, DataRule]:
        """Returns the rule that labels are finite numbers."""
        return {"": NumberLabels()}

    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the squared error of each output."""
        return squared_error(labels, logits)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key.

        Raises:
            ArgumentError: a key is unknown.
        """
        x = check_logits(logits, self.logits_dimension)
        if self._inverse_link_fn is None:
            found = {PredictionKeys.PREDICTIONS: x}
        else:
            found = {PredictionKeys.PREDICTIONS: self._inverse_link_fn(x), PredictionKeys.LOGITS: x}
        return {key: found[key] for key in check_prediction_keys(keys, tuple(found))}

    def task_metrics(self, examples: Examples) -> dict[str, Metric]:
        """Returns the means of predictions and labels."""
        predicted = self.predictions(examples.logits)[PredictionKeys.PREDICTIONS]
        return {
            MetricKeys.PREDICTION_MEAN: mean(predicted, examples.weights),
            MetricKeys.LABEL_MEAN: mean(examples.labels, examples.weights),
        }

    def export_outputs(self, predictions: Mapping[Any, jax.Array]) -> dict[str, ExportOutput]:
        """Returns regression as the default signature, and all predictions."""
        regression = RegressionOutput(predictions[PredictionKeys.PREDICTIONS])
        return {
            DEFAULT_SERVING_KEY: regression,
            REGRESS_SERVING_KEY: regression,
            PREDICT_SERVING_KEY: PredictOutput(dict(predictions)),
        }
