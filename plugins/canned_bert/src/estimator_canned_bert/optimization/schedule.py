"""The learning rate as a function of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from estimator_core.errors import ArgumentError


def warmup_linear_decay(rate: float, num_train_steps: int, num_warmup_steps: int = 0) -> Callable[[Any], Any]:
    """Returns a schedule that rises linearly over the warm-up, and falls linearly to zero at `num_train_steps`.

    The fall counts from step 0, as in google-research/bert: after the warm-up, the rate is on the line from `rate` at
    step 0 to zero at the end.

    Args:
        rate: the rate at which the falling line starts, at step 0, and which the warm-up approaches.
        num_train_steps: the step at which the rate is zero.
        num_warmup_steps: the number of warm-up steps. The first step has the rate 0.

    Raises:
        ArgumentError: a number of steps cannot be used.

    Example:
        >>> schedule = warmup_linear_decay(1.0, 100, 10)
        >>> [round(float(schedule(step)), 2) for step in (0, 5, 10, 50, 100)]
        [0.0, 0.5, 0.9, 0.5, 0.0]

    Source: `optimization.create_optimizer` of google-research/bert.
    """
    if num_train_steps < 1 or not 0 <= num_warmup_steps <= num_train_steps:
        raise ArgumentError(
            "warmup_linear_decay: num_train_steps must be at least 1, and num_warmup_steps from 0 to num_train_steps, "
            f"given: {num_train_steps} and {num_warmup_steps}."
        )

    def schedule(count: Any) -> Any:
        step = jnp.asarray(count, jnp.float32)
        falling = rate * (1.0 - jnp.minimum(step, num_train_steps) / num_train_steps)
        if not num_warmup_steps:
            return falling
        return jnp.where(step < num_warmup_steps, rate * step / num_warmup_steps, falling)

    return schedule
