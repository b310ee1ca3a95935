"""The in-batch softmax, in which the candidates of all other rows are negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from jax import Array

_NEVER = float(jnp.finfo(jnp.float32).min)


def in_batch_scores(
    queries: Array,
    candidates: Array,
    *,
    temperature: float = 1.0,
    candidate_ids: Array | None = None,
    sampling_probability: Array | None = None,
    valid: Array | None = None,
) -> Array:
    """Returns the scores of each query for the candidates of the whole batch. Row i belongs to candidate i.

    Args:
        queries: the embeddings of the queries [batch, n].
        candidates: the embeddings of the candidates [batch, n].
        temperature: the divisor of the scores.
        candidate_ids: integer [batch]. Another row with the same candidate is not a negative.
        sampling_probability: [batch], the probability that each candidate is in a batch. Its logarithm is subtracted
            from the scores.
        valid: bool [batch], False for padding, which is never a negative.

    Returns:
        float32 [batch, batch]. Candidates that must not count have about -3.4e38.

    Source: Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations", 2019.
    """
    q, c = jnp.asarray(queries, jnp.float32), jnp.asarray(candidates, jnp.float32)
    scores = jnp.matmul(q, c.T, precision=jax.lax.Precision.HIGHEST) / temperature
    if sampling_probability is not None:
        scores = scores - jnp.log(jnp.asarray(sampling_probability, jnp.float32))[None, :]
    own = jnp.eye(scores.shape[0], dtype=bool)
    if candidate_ids is not None:
        scores = jnp.where((candidate_ids[:, None] == candidate_ids[None, :]) & ~own, _NEVER, scores)
    if valid is not None:
        scores = jnp.where(valid[None, :] | own, scores, _NEVER)
    return scores


def in_batch_softmax(scores: Array) -> Array:
    """Returns the cross entropy of each row of `in_batch_scores` against its own candidate, float32 [batch].

    Example:
        >>> import jax.numpy as jnp
        >>> float(in_batch_softmax(in_batch_scores(jnp.eye(2) * 100, jnp.eye(2)))[0])
        0.0
    """
    return jax.nn.logsumexp(scores, axis=-1) - jnp.diagonal(scores)
