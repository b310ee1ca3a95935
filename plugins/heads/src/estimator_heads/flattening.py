"""Sequences as rows: [batch, time, ...] becomes [batch * time, ...], and steps that do not count become padding."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp

from estimator_core.metrics import applying_example_weights, example_weights


def flat_steps(array: jax.Array) -> jax.Array:
    """[batch, time, ...] as [batch * time, ...]; at least two axes stay."""
    flat = array.reshape((array.shape[0] * array.shape[1], *array.shape[2:]))
    return flat[:, None] if flat.ndim == 1 else flat


def steps_as_rows(mask: jax.Array) -> AbstractContextManager[Any]:
    """Makes each step a row: an example if `mask` is true and the sequence is not padding, else padding.

    Inside the block, losses and metrics of flattened arrays leave the other steps out, with static shapes.

    Args:
        mask: bool [batch, time].
    """
    outer = example_weights()
    steps = mask if outer is None else mask & (outer > 0)[:, None]
    return applying_example_weights(jnp.ravel(steps).astype(jnp.float32))
