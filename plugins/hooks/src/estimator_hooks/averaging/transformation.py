"""The average as a part of the optimizer. It needs no work on the host, does not interrupt dispatches, and is in every
checkpoint.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from estimator_core.errors import ArgumentError, HookError

FIELD = "ema_of_weights"


class EmaOfWeightsState(NamedTuple):
    """The average of each variable. The name of the field identifies it in checkpoints."""

    ema_of_weights: Any


def ema_of_weights(decay: float) -> optax.GradientTransformation:
    """Returns a transformation that keeps `average = decay * average + (1 - decay) * weights` after every step.

    It does not change the updates, and must come last: `optax.chain(optax.adam(1e-3), ema_of_weights(0.999))`. The
    average starts at the initial weights. Averages of weights in bfloat16 or float16 are float32, because smaller types
    would round the steps away. A step of `ec.sparse_lookup` sees only the rows of its batch, so its tables have no
    average. Evaluations and checkpoints of the averages use the newest rows.

    Args:
        decay: between 0 and 1. The average covers about the last `1 / (1 - decay)` steps.

    Raises:
        ArgumentError: `decay` is not between 0 and 1.

    Example:
        >>> tx = optax.chain(optax.sgd(1.0), ema_of_weights(0.5))
        >>> weights = {"w": jnp.array(4.0)}
        >>> state = tx.init(weights)
        >>> updates, state = tx.update({"w": jnp.array(4.0)}, state, weights)
        >>> float(averages_in(state)["w"])  # half of 4, half of 4 - 4
        2.0

    Source: `tf.train.ExponentialMovingAverage`.
    """
    if not 0.0 < decay < 1.0:
        raise ArgumentError(f"ema_of_weights: decay must be between 0 and 1, given: {decay}")

    def init(params: Any) -> EmaOfWeightsState:
        return EmaOfWeightsState(jax.tree.map(lambda weight: jnp.array(weight, _kept_in(weight)), params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, EmaOfWeightsState]:
        if params is None:
            raise ArgumentError("ema_of_weights: update needs params. The training step passes them.")
        weights = optax.apply_updates(params, updates)
        averages = jax.tree.map(
            lambda average, weight: decay * average + (1.0 - decay) * weight.astype(average.dtype),
            state.ema_of_weights,
            weights,
        )
        return updates, EmaOfWeightsState(averages)

    return optax.GradientTransformation(init, update)


def _kept_in(weight: Any) -> Any:
    """Returns the dtype of an average. Types with 8 or 11 significant bits would round away a hundredth of a step."""
    # jax does not promote types of 8 bits, so the choice is explicit.
    return jnp.float32 if weight.dtype.itemsize < 4 else jnp.promote_types(weight.dtype, jnp.float32)


def averages_in(opt_state: Any) -> dict[str, Any]:
    """Returns the averages in an optimizer state, by variable path. Tables of `ec.sparse_lookup` have no average.

    Raises:
        HookError: the optimizer keeps no averages.
    """
    nodes = jax.tree.leaves(opt_state, is_leaf=lambda node: isinstance(node, EmaOfWeightsState))
    found = [node.ema_of_weights for node in nodes if isinstance(node, EmaOfWeightsState)]
    averages = {path: value for part in found if isinstance(part, dict) for path, value in part.items()}
    if not averages:
        raise HookError(f"The optimizer keeps no average of the weights. {how_to_keep(tables=bool(found))}")
    return averages


def how_to_keep(*, tables: bool) -> str:
    """Returns the advice for an optimizer without averages.

    Args:
        tables: whether the optimizer contains `ema_of_weights`, but all its variables are tables of `ec.sparse_lookup`.
    """
    if tables:
        return (
            "All its variables are tables of ec.sparse_lookup, and ema_of_weights sees only the rows of a batch. Use "
            "ec.get_variable (row_sparse=False in estimator-canned-tabular)."
        )
    return "Build train_op with optax.chain(optimizer, estimator_hooks.ema_of_weights(0.999))."
