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
    """Returns the values for the model: in TRAIN the weights, which it adds to the average, and otherwise the average.

    The average includes the weights at the start of each step, and is corrected for its start at zero. Before the first
    step, it equals the weights.

    Args:
        values: the trainable variables in use, by name.
        mode: the mode of model_fn.
        decay: the share of the average that remains after one step.
        updates_per_step: the number of times that model_fn runs per step (`RunConfig.accumulate_steps`).

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
    """Returns whether the variables of a model include averages over at least one step."""
    return float(variables.get(_WEIGHT, 0.0)) > 0


def with_averages(variables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the variables for evaluation: the averages instead of the weights if the model keeps averages.

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
