"""The head that finds the candidate of each query among the candidates of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from estimator_core.errors import ArgumentError, check_count
from estimator_core.metrics import example_weights, mean
from estimator_heads.base_head import BaseHead, add_losses
from estimator_heads.checks import check_prediction_keys, read_weights
from estimator_heads.data.weights import weight_rules
from estimator_heads.keys import MetricKeys
from estimator_heads.losses import in_batch_scores, in_batch_softmax
from estimator_heads.metrics.top_k import ranks
from estimator_heads.reduction import Reduction, reduce_loss

if TYPE_CHECKING:
    from estimator_core.metrics import Metric
    from estimator_heads.data.rule import DataRule

_KEYS = ("query", "candidate", "score")


class RetrievalHead(BaseHead):
    """Two towers that are trained with an in-batch softmax. The candidates of the other rows are the negatives.

    Logits are a dict of `query` and `candidate` embeddings [batch, n], or both side by side [batch, 2 n]. The head uses
    no labels. Predictions: `query`, `candidate`, `score` [batch, 1]. Metrics: `average_loss`, `in_batch_recall@k`,
    `in_batch_mrr`. These depend on the other examples of the batch, so compare them only at the same batch size.

    Args:
        embedding_dimension: the size n of an embedding.
        temperature: the divisor of the scores, above 0.
        candidate_id_column: the name of the feature with candidate ids [batch]. The same candidate in another row does
            not count as a negative.
        sampling_probability_column: the name of the feature with the probability of each candidate [batch]. It corrects
            for frequent candidates.
        weight_column: the name of the weight feature, [batch] or [batch, 1].
        top_k: the k of `in_batch_recall@k`.
        loss_reduction: one of `Reduction`.
        name: the suffix of metric and summary keys.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> head = RetrievalHead(2, temperature=0.01)
        >>> towers = {"query": np.eye(2), "candidate": np.eye(2)}
        >>> float(head.loss(None, towers))
        0.0
    """

    def __init__(
        self,
        embedding_dimension: int,
        *,
        temperature: float = 1.0,
        candidate_id_column: str | None = None,
        sampling_probability_column: str | None = None,
        weight_column: str | None = None,
        top_k: Sequence[int] = (1, 5, 10),
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ) -> None:
        check_count("embedding_dimension", embedding_dimension)
        if not temperature > 0:
            raise ArgumentError(f"temperature must be above 0. Given: {temperature}.")
        for k in top_k:
            check_count("each of top_k", k)
        super().__init__(name=name, logits_dimension=2 * embedding_dimension, loss_reduction=loss_reduction)
        self._size = embedding_dimension
        self._temperature = temperature
        self._candidate_ids = candidate_id_column
        self._probabilities = sampling_probability_column
        self._weight_column = weight_column
        self._top_k = tuple(top_k)

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
        """Returns the weighted, reduced cross entropy of the candidate of each query. `labels` are ignored."""
        scores = self._scores(logits, features)
        if labels is not None and jnp.shape(labels)[:1] != scores.shape[:1]:
            raise ArgumentError(f"labels of shape {jnp.shape(labels)} do not fit a batch of {scores.shape[0]}.")
        loss = reduce_loss(in_batch_softmax(scores), self._weights(features, scores), self.loss_reduction)
        return add_losses(loss, regularization_losses)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, jax.Array]:
        """Returns the predictions by key.

        Raises:
            ArgumentError: a key is unknown.
        """
        query, candidate = self._towers(logits)
        score = jnp.sum(query * candidate, axis=-1, keepdims=True) / self._temperature
        found = {"query": query, "candidate": candidate, "score": score}
        return {key: found[key] for key in check_prediction_keys(keys, _KEYS)}

    def metrics(
        self,
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[jax.Array] | None = None,
    ) -> dict[str, Metric]:
        """Returns the average loss, and metrics of the rank of each query's own candidate in its batch."""
        scores = self._scores(logits, features)
        weights = self._weights(features, scores)
        place = jnp.diagonal(ranks(scores)).astype(jnp.float32)
        place = jnp.where(jnp.isnan(scores).any(axis=-1), jnp.nan, place)
        found: dict[str, Metric] = {MetricKeys.LOSS_MEAN: mean(in_batch_softmax(scores), weights)}
        for k in self._top_k:
            found[f"in_batch_recall@{k}"] = mean(jnp.where(jnp.isnan(place), jnp.nan, 1.0 * (place < k)), weights)
        found["in_batch_mrr"] = mean(1.0 / (place + 1.0), weights)
        named = {self.metric_key(key): metric for key, metric in found.items()}
        return named | self._regularization_metric(regularization_losses)

    def _towers(self, logits: Any) -> tuple[jax.Array, jax.Array]:
        if isinstance(logits, Mapping):
            missing = [key for key in _KEYS[:2] if key not in logits]
            if missing:
                raise ArgumentError(f"logits has missing values for {missing}. Found: {sorted(logits)}.")
            query, candidate = (jnp.asarray(logits[key], jnp.float32) for key in _KEYS[:2])
        else:
            both = jnp.asarray(logits, jnp.float32)
            query, candidate = both[..., : self._size], both[..., self._size :]
        if query.ndim != 2 or query.shape != candidate.shape or query.shape[-1] != self._size:
            raise ArgumentError(
                f"A RetrievalHead takes query and candidate embeddings [batch, {self._size}]; "
                f"got {query.shape} and {candidate.shape}."
            )
        return query, candidate

    def _scores(self, logits: Any, features: Mapping[str, Any] | None) -> jax.Array:
        query, candidate = self._towers(logits)
        mask = example_weights()
        return in_batch_scores(
            query,
            candidate,
            temperature=self._temperature,
            candidate_ids=self._column(self._candidate_ids, features, query.shape[0]),
            sampling_probability=self._column(self._probabilities, features, query.shape[0]),
            valid=None if mask is None else mask > 0,
        )

    def _column(self, name: str | None, features: Mapping[str, Any] | None, batch: int) -> jax.Array | None:
        if name is None:
            return None
        if features is None or name not in features:
            raise ArgumentError(f"The column {name!r} is not among the features. Found: {sorted(features or {})}.")
        column = jnp.asarray(features[name])
        if column.size != batch:
            raise ArgumentError(f"The column {name!r} has shape {column.shape}; it needs one value an example.")
        return column.reshape(batch)

    def _weights(self, features: Mapping[str, Any] | None, scores: jax.Array) -> jax.Array | None:
        weights = read_weights(features, self._weight_column, scores)
        return None if weights is None else weights[:, 0]
