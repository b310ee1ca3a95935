"""Averaged weights, kept as model state so that evaluation, prediction and export can use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import estimator_core as ec

SCOPE = "ema"
_WEIGHT = f"{SCOPE}/weight"


def averaged(values: Mapping[str, Any], mode: str, decay: float, *, updates_per_step: int = 1) -> dict[str, Any]:
    """The values model_fn computes with: themselves in TRAIN, which takes them into the average; else the average.

    The average is over the weights that each step started from, corrected for its start at zero; before the first step
    it is the weights themselves.

    Args:
        values: the trainable variables in use, by name.
        mode: the mode of model_fn.
        decay: share of the average that one step keeps.
        updates_per_step: how often model_fn runs in one step (`RunConfig.accumulate_steps`).

    Source: `tf.train.ExponentialMovingAverage`, with the correction of Kingma and Ba, Adam (2015).
    """
    kept = decay ** (1.0 / updates_per_step)
    weight = ec.get_variable(_WEIGHT, (), jax.nn.initializers.zeros, trainable=False)
    result: dict[str, Any] = {}
    for name, value in values.items():
        average = ec.get_variable(
            f"{SCOPE}/{name}", value.shape, jax.nn.initializers.zeros, dtype=value.dtype, trainable=False
        )
        if mode == ec.ModeKeys.TRAIN:
            current = jax.lax.stop_gradient(value)
            ec.set_variable(f"{SCOPE}/{name}", kept * average + (1.0 - kept) * current)
            result[name] = value
        else:
            result[name] = jnp.where(weight > 0, average / jnp.maximum(weight, 1e-30), value)
    if mode == ec.ModeKeys.TRAIN:
        ec.set_variable(_WEIGHT, kept * weight + (1.0 - kept))
    return result


def has_averages(variables: Mapping[str, np.ndarray]) -> bool:
    """Whether the variables of a model hold averages of some steps."""
    return float(variables.get(_WEIGHT, 0.0)) > 0


def with_averages(variables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The variables that a model evaluates with: averages in the place of the weights, where a model keeps them.

    Example:
        >>> variables = {"w": np.ones(2), "ema/w": np.full(2, 0.3), "ema/weight": np.float64(0.1)}
        >>> with_averages(variables)["w"].round(6).tolist(), with_averages({"w": np.ones(2)})["w"].tolist()
        ([3.0, 3.0], [1.0, 1.0])
    """
    own = {name: value for name, value in variables.items() if not name.startswith(f"{SCOPE}/")}
    if not has_averages(variables):
        return own
    weight = float(variables[_WEIGHT])
    averages = {name: variables[f"{SCOPE}/{name}"] for name in own if f"{SCOPE}/{name}" in variables}
    return own | {name: (average / weight).astype(average.dtype) for name, average in averages.items()}
