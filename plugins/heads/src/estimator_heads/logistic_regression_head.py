"""The head for numbers between 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from estimator_heads.checks import check_label_range, check_labels
from estimator_heads.data.number_labels import NumberLabels
from estimator_heads.losses import sigmoid_cross_entropy
from estimator_heads.reduction import Reduction
from estimator_heads.regression_head import RegressionHead

if TYPE_CHECKING:
    from estimator_heads.data.rule import DataRule


class LogisticRegressionHead(RegressionHead):
    """Predicts a number in [0, 1], such as a fraction or a probability, with the sigmoid cross entropy of one logit.

    Predictions: `predictions` (the sigmoid), `logits`.

    Args:
        weight_column: the name of the weight feature ([D0, ..., DN] or [D0, ..., DN, 1]), or a numeric column.
        loss_reduction: one of `Reduction`.
        name: the suffix of metric and summary keys.

    Raises:
        ArgumentError: the reduction is unknown.

    Example:
        >>> import numpy as np
        >>> head = LogisticRegressionHead()
        >>> round(float(head.loss(labels=np.array([[0.5]]), logits=np.array([[0.0]]))), 4)
        0.6931

    Source: `tf.estimator.LogisticRegressionHead`.
    """

    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ) -> None:
        super().__init__(
            label_dimension=1,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            inverse_link_fn=jax.nn.sigmoid,
            name=name,
        )

    def process_labels(self, labels: Any, logits: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Returns the labels as float32 in [0, 1]."""
        checked = check_labels(labels, logits, 1).astype(jnp.float32)
        return checked, check_label_range(checked, 2, "Labels must be in range [0, 1]")

    def label_rules(self) -> dict[str, DataRule]:
        """Returns the rule that labels are numbers from 0 to 1."""
        return {"": NumberLabels(low=0, high=1)}

    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the sigmoid cross entropy."""
        return sigmoid_cross_entropy(labels, logits)
