"""Self-attention over a padded batch: fused if possible, in separate steps if probabilities are dropped."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp

from estimator_canned_bert.encoder.layers import dropout

Implementation = Literal["xla", "cudnn"]


def attend(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    mask: jax.Array,
    *,
    dropout_rate: float = 0.0,
    dropout_key: jax.Array | None = None,
    implementation: Implementation = "xla",
) -> jax.Array:
    """Returns the attention of every position to the positions that the mask allows.

    Args:
        query: the queries, [batch, length, heads, size].
        key: the keys, of the same shape.
        value: the values, of the same shape.
        mask: bool [batch, 1, 1 or length, length], True where a position (the third axis) may attend to another.
        dropout_rate: the share of the probabilities to drop. It needs `dropout_key`.
        dropout_key: the random key of dropout. None: no dropout, and the fused attention is used.
        implementation: the implementation of the fused attention. "xla" compiles on all platforms.

    Returns:
        [batch, length, heads, size], in the dtype of `query`. Softmax runs in float32.
    """
    if dropout_key is None or dropout_rate == 0.0:
        if implementation == "cudnn":
            # cuDNN reads the mask as a bias, and refuses one without an axis of queries. The heads still share it.
            mask = jnp.broadcast_to(mask, (query.shape[0], 1, query.shape[1], key.shape[1]))
        return jax.nn.dot_product_attention(query, key, value, mask=mask, implementation=implementation)
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32)
    scores = scores * (query.shape[-1] ** -0.5)
    scores = jnp.where(mask, scores, jnp.finfo(jnp.float32).min)
    probabilities = jax.nn.softmax(scores, axis=-1).astype(query.dtype)
    probabilities = dropout(probabilities, dropout_rate, dropout_key)
    return jnp.einsum("bhqk,bkhd->bqhd", probabilities, value)
