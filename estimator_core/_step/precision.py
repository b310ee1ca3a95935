"""Precision policies, and the dynamic scale of the loss that float16 needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._types import PyTree

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


def compute_dtype(precision: str) -> np.dtype | None:
    """The dtype of a policy.

    Example:
        >>> compute_dtype("bfloat16"), compute_dtype("float32")
        (dtype(bfloat16), None)
    """
    return COMPUTE_DTYPES[precision]


def scales_loss(precision: str) -> bool:
    """Whether gradients of a policy underflow unless the loss is scaled up."""
    return precision == "float16"


class LossScale(NamedTuple):
    """The scale, and the steps since it changed or overflowed. It is the last part of the optimizer state."""

    scale: jax.Array
    good_steps: jax.Array


def initial_loss_scale() -> LossScale:
    """The scale of a fresh run: 2**15."""
    return LossScale(jnp.float32(_FIRST_SCALE), jnp.int32(0))


def unscaled(gradients: PyTree, current: LossScale) -> PyTree:
    """Converts gradients of the scaled loss to those of the loss itself."""
    return jax.tree.map(lambda leaf: leaf / current.scale, gradients)


def all_finite(tree: PyTree) -> jax.Array:
    """Whether no gradient has overflowed."""
    leaves = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.stack(leaves).all() if leaves else jnp.bool_(True)


def next_loss_scale(current: LossScale, finite: jax.Array) -> LossScale:
    """Half the scale after an overflow; twice the scale after 2000 steps without one.

    Source: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2.
    """
    good = jnp.where(finite, current.good_steps + 1, 0)
    grows = good >= _GROW_AFTER
    grown = jnp.where(grows, jnp.minimum(current.scale * 2, _LARGEST_SCALE), current.scale)
    return LossScale(jnp.where(finite, grown, jnp.maximum(current.scale / 2, 1.0)), jnp.where(grows, 0, good))


def where_finite(finite: jax.Array, new: PyTree, old: PyTree) -> PyTree:
    """The new state, or the old one if a gradient has overflowed, so that the step is left out."""
    return jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)
