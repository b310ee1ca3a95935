"""The head for counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from estimator_heads.data.number_labels import NumberLabels
from estimator_heads.losses import log_poisson
from estimator_heads.reduction import Reduction
from estimator_heads.regression_head import RegressionHead

if TYPE_CHECKING:
    from estimator_heads.data.rule import DataRule


class PoissonRegressionHead(RegressionHead):
    """Predicts counts whose rate is the exponential of the logits, with the Poisson log likelihood.

    Predictions: `predictions` (the rate), `logits`.

    Args:
        label_dimension: the number of counts per example.
        weight_column: the name of the weight feature ([D0, ..., DN], [.., 1] or [.., label_dimension]), or a numeric
            column.
        loss_reduction: one of `Reduction`. The mean is over examples and outputs.
        compute_full_loss: whether the loss includes the approximate `log(labels!)`, which does not depend on the
            logits.
        name: the suffix of metric and summary keys.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> head = PoissonRegressionHead(compute_full_loss=False)
        >>> float(head.loss(labels=np.array([[1.0]]), logits=np.array([[0.0]])))
        1.0

    Source: `tf.estimator.PoissonRegressionHead`.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            inverse_link_fn=jnp.exp,
            name=name,
        )
        self._compute_full_loss = compute_full_loss

    def label_rules(self) -> dict[str, DataRule]:
        """Returns the rule that labels are counts: finite numbers of at least 0."""
        return {"": NumberLabels(low=0)}

    def example_loss(self, labels: jax.Array, logits: jax.Array) -> jax.Array:
        """Returns the negative log likelihood of each count."""
        return log_poisson(labels, logits, compute_full_loss=self._compute_full_loss)
