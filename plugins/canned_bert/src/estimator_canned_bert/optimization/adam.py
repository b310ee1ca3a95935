"""The Adam of the training of BERT: it does not correct the moments for their start at zero."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class BertAdamState(NamedTuple):
    """The moments of each variable."""

    mu: Any
    nu: Any


def scale_by_bert_adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6) -> optax.GradientTransformation:
    """Scales gradients by the moments of Adam without bias correction: `m / (sqrt(v) + eps)`.

    The first steps are about `(1 - b1) / sqrt(1 - b2)`, three times, as long as with the correction. The warm-up allows
    for that.

    Example:
        >>> tx = scale_by_bert_adam()
        >>> updates, _ = tx.update({"w": jnp.array(2.0)}, tx.init({"w": jnp.array(0.0)}))
        >>> round(float(updates["w"]), 3)
        3.162

    Source: `optimization.AdamWeightDecayOptimizer` of google-research/bert.
    """

    def init(params: Any) -> BertAdamState:
        return BertAdamState(jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, BertAdamState]:
        del params
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g), state.nu, updates)
        return jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mu, nu), BertAdamState(mu, nu)

    return optax.GradientTransformation(init, update)
