"""Less memory for more time: a step over several micro-batches, and a forward pass that is computed again.

Accumulation is exact for losses that are means over examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from estimator_core._types import Arrays, Mask, PyTree


def rematerialised(forward: Callable[..., Any], remat: str) -> Callable[..., Any]:
    """The forward pass with less memory for more arithmetic.

    Args:
        forward: the function to differentiate.
        remat: "none" keeps every intermediate value; "dots" keeps the results of matrix products and computes the rest
            again; "full" keeps only the inputs.
    """
    if remat == "none":
        return forward
    policies = jax.checkpoint_policies
    policy = policies.dots_with_no_batch_dims_saveable if remat == "dots" else policies.nothing_saveable
    return jax.checkpoint(forward, policy=policy)


#: Dense gradients, row gradients and losses by member, and the other results of the forward pass.
Gradients: TypeAlias = tuple[PyTree, PyTree, PyTree, dict[str, Any]]


def over_micro_batches(
    gradients: Callable[..., Gradients],
    count: int,
    features: PyTree,
    labels: PyTree,
    weights: Mask,
    model_state: Arrays,
    *,
    spread: Callable[[PyTree], PyTree] | None = None,
) -> Gradients:
    """Runs `gradients` on `count` equal parts of the batch and averages, weighted by the real examples.

    A batch whose size does not divide (a ragged last one) runs as one part. Losses, gradients and scalar outputs are
    averaged with the share of each part. Row gradients stay side by side, scaled by their part's share.

    Args:
        gradients: `(features, labels, weights, model_state, salt) -> (dense gradients, row gradients, losses, aux)`.
        count: the number of parts.
        features: those of the whole batch.
        labels: those of the whole batch, or None.
        weights: its padding mask, or None.
        model_state: the state before the first part; it passes from part to part.
        spread: splits every part over all devices; None with one device.
    """
    size = _batch_size((features, labels))
    if count == 1 or size is None or size % count:
        return gradients(features, labels, weights, model_state, None)
    parts = jax.tree.map(
        lambda leaf: leaf.reshape(count, leaf.shape[0] // count, *leaf.shape[1:]), (features, labels, weights)
    )

    if spread is not None:
        parts = spread(parts)

    def one(carry: Arrays, part: PyTree) -> tuple[Arrays, PyTree]:
        salt, (features, labels, weights) = part
        dense, rows, losses, aux = gradients(features, labels, weights, carry, salt)
        share = jnp.float32(size // count) if weights is None else jnp.sum(weights)
        return aux.pop("model_state"), (share, dense, rows, losses, aux)

    model_state, (shares, dense, rows, losses, aux) = jax.lax.scan(
        one, model_state, (jnp.arange(count, dtype=jnp.uint32), parts)
    )
    shares = shares / jnp.maximum(jnp.sum(shares), 1e-30)

    def average(stacked: jax.Array) -> jax.Array:
        return jnp.tensordot(shares.astype(stacked.dtype), stacked, axes=1)

    def scale(stacked: jax.Array) -> jax.Array:
        return (stacked * shares.astype(stacked.dtype).reshape(-1, *[1] * (stacked.ndim - 1))).reshape(
            -1, stacked.shape[-1]
        )

    return (
        jax.tree.map(average, dense),
        jax.tree.map(scale, rows),
        jax.tree.map(average, losses),
        {
            "loss": average(aux["loss"]),
            "model_state": model_state,
            "outputs": {name: _combine(value, average) for name, value in aux["outputs"].items()},
            "ids": {key: ids.reshape(-1) for key, ids in aux["ids"].items()},
        },
    )


def _combine(value: PyTree, average: Callable[[jax.Array], jax.Array]) -> PyTree:
    """Averages scalars, merges metrics, and joins batches again."""
    if hasattr(value, "merge"):
        count = jax.tree_util.tree_leaves(value)[0].shape[0]
        parts = [jax.tree.map(lambda leaf, index=index: leaf[index], value) for index in range(count)]
        merged = parts[0]
        for part in parts[1:]:
            merged = merged.merge(part)
        return merged
    if value.ndim == 1:
        return average(value) if jnp.issubdtype(value.dtype, jnp.floating) else value[-1]
    return value.reshape(-1, *value.shape[2:])


def _batch_size(tree: PyTree) -> int | None:
    sizes = {leaf.shape[0] if leaf.ndim else None for leaf in jax.tree_util.tree_leaves(tree)}
    return sizes.pop() if len(sizes) == 1 else None
