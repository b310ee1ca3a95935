"""The computation of a step: its precision, its micro-batches, and the values that it recomputes.

Accumulation is exact for losses that are means over examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._types import Arrays, Mask, PyTree

#: The dtype in which model_fn computes, by `RunConfig.precision`; None: that of its variables.
COMPUTE_DTYPES: Final[Mapping[str, np.dtype | None]] = {
    "float32": None,
    "bfloat16": np.dtype(jnp.bfloat16),
    "float16": np.dtype(np.float16),
}
LOSS_SCALE = "loss_scale"
_FIRST_SCALE = 2.0**15
_LARGEST_SCALE = 2.0**24
_GROW_AFTER = 2000


def scales_loss(precision: str) -> bool:
    """Returns whether gradients of a policy underflow unless the loss is scaled up."""
    return precision == "float16"


class LossScale(NamedTuple):
    """The scale of the loss, and the number of steps since it changed or overflowed.

    It is the last part of the optimizer state.
    """

    scale: jax.Array
    good_steps: jax.Array


def initial_loss_scale() -> LossScale:
    """Returns the scale of a fresh run: 2**15."""
    return LossScale(jnp.float32(_FIRST_SCALE), jnp.int32(0))


def unscaled(gradients: PyTree, current: LossScale) -> PyTree:
    """Converts gradients of the scaled loss to those of the loss itself."""
    return jax.tree.map(lambda leaf: leaf / current.scale, gradients)


def all_finite(tree: PyTree) -> jax.Array:
    """Returns whether no gradient has overflowed."""
    leaves = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.stack(leaves).all() if leaves else jnp.bool_(True)


def next_loss_scale(current: LossScale, finite: jax.Array) -> LossScale:
    """Returns half the scale after an overflow; twice the scale after 2000 steps without one.

    Source: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2.
    """
    good = jnp.where(finite, current.good_steps + 1, 0)
    grows = good >= _GROW_AFTER
    grown = jnp.where(grows, jnp.minimum(current.scale * 2, _LARGEST_SCALE), current.scale)
    return LossScale(jnp.where(finite, grown, jnp.maximum(current.scale / 2, 1.0)), jnp.where(grows, 0, good))


def where_finite(finite: jax.Array, new: PyTree, old: PyTree) -> PyTree:
    """Returns the new state, or the old one if a gradient has overflowed, so that the step is skipped."""
    return jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)


def rematerialised(forward: Callable[..., Any], remat: str) -> Callable[..., Any]:
    """Returns the forward pass with less memory for more arithmetic.

    Args:
        forward: the function to differentiate.
        remat: "none" keeps every intermediate value. "dots" keeps the results of matrix products and recomputes the
            rest. "full" keeps only the inputs.
    """
    if remat == "none":
        return forward
    policies = jax.checkpoint_policies
    policy = policies.dots_with_no_batch_dims_saveable if remat == "dots" else policies.nothing_saveable
    return jax.checkpoint(forward, policy=policy)


#: The features, labels and padding mask of a batch.
BatchData: TypeAlias = tuple[PyTree, PyTree, Mask]

#: Dense gradients, row gradients and losses by member, and the other results of the forward pass.
Gradients: TypeAlias = tuple[PyTree, PyTree, PyTree, dict[str, Any]]


def over_micro_batches(
    gradients: Callable[[BatchData, Arrays, jax.Array | None], Gradients],
    count: int,
    batch: BatchData,
    model_state: Arrays,
    *,
    spread: Callable[[PyTree], PyTree] | None = None,
) -> Gradients:
    """Runs `gradients` on `count` equal parts of the batch and averages, weighted by the real examples.

    A batch whose size does not divide evenly (a ragged last one) runs as one part. Losses, gradients and scalar outputs
    are averaged by the share of each part. Row gradients are concatenated, scaled by the share of their part.

    Args:
        gradients: `(batch, model_state, salt) -> (dense gradients, row gradients, losses, aux)`.
        count: the number of parts.
        batch: the whole batch.
        model_state: the state before the first part; it passes from part to part.
        spread: a function that splits every part over all devices. None with one device.
    """
    features, labels, weights = batch
    size = _batch_size((features, labels))
    if count == 1 or size is None or size % count:
        return gradients(batch, model_state, None)
    parts = jax.tree.map(lambda leaf: leaf.reshape(count, leaf.shape[0] // count, *leaf.shape[1:]), batch)
    if spread is not None:
        parts = spread(parts)

    def one(carry: Arrays, part: tuple[jax.Array, BatchData]) -> tuple[Arrays, PyTree]:
        salt, data = part
        _, _, weights = data
        dense, rows, losses, aux = gradients(data, carry, salt)
        share = jnp.float32(size // count) if weights is None else jnp.sum(weights)
        return aux.pop("model_state"), (share, dense, rows, losses, aux)

    model_state, (shares, dense, rows, losses, aux) = jax.lax.scan(
        one, model_state, (jnp.arange(count, dtype=jnp.uint32), parts)
    )
    shares = shares / jnp.maximum(jnp.sum(shares), 1e-30)

    def of_parts(stacked: jax.Array) -> jax.Array:
        return shares.astype(stacked.dtype).reshape(-1, *[1] * (stacked.ndim - 1))

    def counted(stacked: jax.Array) -> jax.Array:
        # The loss of a part with only padding may be 0/0, which a share of 0 would not remove.
        return stacked if weights is None else jnp.where(of_parts(stacked) > 0, stacked, 0)

    def average(stacked: jax.Array) -> jax.Array:
        return jnp.tensordot(shares.astype(stacked.dtype), counted(stacked), axes=1)

    def scale(stacked: jax.Array) -> jax.Array:
        return (counted(stacked) * of_parts(stacked)).reshape(-1, stacked.shape[-1])

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
