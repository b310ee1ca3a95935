"""Reshapes sequences to rows: [batch, time, ...] becomes [batch * time, ...], and masked steps become padding."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp

from estimator_core.metrics import applying_example_weights, example_weights


def flat_steps(array: jax.Array) -> jax.Array:
    """Reshapes [batch, time, ...] to [batch * time, ...] with at least two axes."""
    flat = array.reshape((array.shape[0] * array.shape[1], *array.shape[2:]))
    return flat[:, None] if flat.ndim == 1 else flat


def steps_as_rows(mask: jax.Array) -> AbstractContextManager[Any]:
    """Makes each step a row. It is an example if `mask` is true and the sequence is not padding, otherwise padding.

    Inside the block, losses and metrics of flattened arrays ignore the padding steps, with static shapes.

    Args:
        mask: bool [batch, time].
    """
    outer = example_weights()
    steps = mask if outer is None else mask & (outer > 0)[:, None]
    return applying_example_weights(jnp.ravel(steps).astype(jnp.float32))
