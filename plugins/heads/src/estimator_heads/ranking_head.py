"""The head that ranks the items of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError, check_count
from estimator_core.metrics import mean
from estimator_heads.base_head import BaseHead, add_losses
from estimator_heads.checks import check_logits, check_prediction_keys
from estimator_heads.data.weights import weight_rules
from estimator_heads.keys import MetricKeys, PredictionKeys
from estimator_heads.losses import listwise_softmax, pairwise_logistic
from estimator_heads.metrics.ranking import mean_reciprocal_rank, ndcg
from estimator_heads.metrics.top_k import ranks
from estimator_heads.reduction import Reduction, reduce_loss

if TYPE_CHECKING:
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule

RankingLoss = Literal["pairwise", "listwise"]
_LOSSES = {"pairwise": pairwise_logistic, "listwise": listwise_softmax}


class RankingHead(BaseHead):
    """Trains scores for the items of a list, so that more relevant items score higher.

    Logits are one score per item, [batch, list_size]. Labels are relevances of the same shape, below 0 after the end of
    the list. Predictions: `logits`, `ranks` (the rank of each item, 0 for the best). Metrics: `average_loss`, `ndcg@k`,
    `mrr`.

    A prediction has no labels, so the logits mark the end of a list: items with `-inf` rank last. If their relevance is
    below 0, they do not change losses or gradients.

    Args:
        list_size: the number of items per list, including padding.
        loss: "pairwise" (logistic loss of pairs) or "listwise" (softmax cross entropy of the list).
        top_k: the k of `ndcg@k`.
        weight_column: the name of the feature with one weight per list, [batch] or [batch, 1].
        loss_reduction: one of `Reduction`, over lists.
        name: the suffix of metric and summary keys.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> head = RankingHead(list_size=3)
        >>> metrics = head.metrics({}, np.array([[3.0, 2.0, 1.0]]), np.array([[2, 0, -1]]))
        >>> metrics["ndcg@5"].compute(), metrics["mrr"].compute()
        (1.0, 1.0)
    """

    def __init__(
        self,
        list_size: int,
        *,
        loss: RankingLoss = "pairwise",
        top_k: Sequence[int] = (5, 10),
        weight_column: str | None = None,
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ) -> None:
        check_count("list_size", list_size, least=2)
        if loss not in _LOSSES:
            raise ArgumentError(f"loss must be one of {list(_LOSSES)}. Given: {loss!r}.")
        for k in top_k:
            check_count("each of top_k", k)
        super().__init__(name=name, logits_dimension=list_size, loss_reduction=loss_reduction)
        self._list_loss = _LOSSES[loss]
        self._top_k = tuple(top_k)
        self._weight_column = weight_column

    def weight_rules(self) -> dict[str, DataRule]:
        """Returns the rule that weights are finite and at least 0."""
        return weight_rules(self._weight_column)

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> jax.Array:
        """Returns the weighted, reduced loss of the lists."""
        scores, relevance, valid = self._lists(labels, logits)
        losses = self._losses(relevance, scores, valid)
        loss = reduce_loss(losses, self._weights(features, losses), self.loss_reduction)
        return add_losses(loss, regularization_losses)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key.

        Raises:
            ArgumentError: a key is unknown.
        """
        scores = check_logits(logits, self.logits_dimension)
        found = {PredictionKeys.LOGITS: scores, "ranks": ranks(scores).astype(jnp.int32)}
        return {key: found[key] for key in check_prediction_keys(keys, tuple(found))}

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns the average loss, NDCG at each k, and the mean reciprocal rank."""
        scores, relevance, valid = self._lists(labels, logits)
        losses = self._losses(relevance, scores, valid)
        weights = self._weights(features, losses)
        found: dict[str, Metric] = {MetricKeys.LOSS_MEAN: mean(losses, weights)}
        for k in self._top_k:
            found[f"ndcg@{k}"] = ndcg(relevance, scores, weights, k=k, valid=valid)
        found["mrr"] = mean_reciprocal_rank(relevance, scores, weights, valid=valid)
        named = {self.metric_key(key): metric for key, metric in found.items()}
        return named | self._regularization_metric(regularization_losses)

    def _lists(self, labels: Any, logits: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        scores = check_logits(logits, self.logits_dimension)
        relevance = None if labels is None else jnp.asarray(labels, jnp.float32)
        if relevance is None or relevance.shape != scores.shape or scores.ndim != 2:
            raise ArgumentError(
                f"A RankingHead takes logits and labels [batch, {self.logits_dimension}]; got {scores.shape} and "
                f"{None if relevance is None else relevance.shape}."
            )
        valid = ~(relevance < 0)  # NaN is a wrong label, not a place without an item
        return scores, jnp.where(valid, relevance, 0.0), valid

    def _losses(self, relevance: jax.Array, scores: jax.Array, valid: jax.Array) -> jax.Array:
        """Returns the loss of each list. A relevance of NaN makes it NaN, because comparisons would skip it."""
        return jnp.where(jnp.isnan(relevance).any(axis=-1), jnp.nan, self._list_loss(relevance, scores, valid))

    def _weights(self, features: Mapping[str, Any] | None, losses: jax.Array) -> jax.Array | None:
        if self._weight_column is None:
            return None
        if features is None or self._weight_column not in features:
            raise ArgumentError(
                f"The weight column {self._weight_column!r} is not among the features. Found: {sorted(features or {})}."
            )
        weights = jnp.asarray(features[self._weight_column], jnp.float32)
        if weights.shape not in (losses.shape, (*losses.shape, 1)):
            raise ArgumentError(f"weights shape must be [batch] or [batch, 1]; got {weights.shape}.")
        return weights.reshape(losses.shape)
