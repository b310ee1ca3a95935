"""Optimizers with the updates of TensorFlow, as optax transformations."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from estimator_core.errors import ArgumentError


class FtrlState(NamedTuple):
    """The slots of `ftrl`: the number of steps, and per variable the sum of squared gradients and the linear term."""

    step: jax.Array
    accumulators: Any
    linear: Any


def ftrl(
    learning_rate: optax.ScalarOrSchedule = 0.001,
    *,
    learning_rate_power: float = -0.5,
    initial_accumulator_value: float = 0.1,
    l1_regularization_strength: float = 0.0,
    l2_regularization_strength: float = 0.0,
    l2_shrinkage_regularization_strength: float = 0.0,
    beta: float = 0.0,
) -> optax.GradientTransformation:
    """Returns the optimizer "follow the regularized leader" (proximal). Its `update` requires `params`.

    Args:
        learning_rate: a number or an optax schedule.
        learning_rate_power: at most 0. With -0.5, the rate falls with the square root of the accumulated gradients.
        initial_accumulator_value: the initial sum of squared gradients, at least 0.
        l1_regularization_strength: the strength of the L1 penalty, at least 0. It makes weights exactly 0.
        l2_regularization_strength: the strength of the L2 penalty, at least 0.
        l2_shrinkage_regularization_strength: the strength of a penalty on the magnitude of the weights, at least 0. It
            is applied to the gradient of the linear term.
        beta: the beta of the paper, at least 0. Larger values make the steps smaller.

    Raises:
        ArgumentError: a value is outside its range.

    Example:
        >>> import jax.numpy as jnp
        >>> optimizer = ftrl(0.2)
        >>> weight = jnp.array(0.0)
        >>> update, _ = optimizer.update(jnp.array(2.0), optimizer.init(weight), weight)
        >>> round(float(weight + update), 6)
        -0.197546

    Source: McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013; `tf.keras.optimizers.legacy.Ftrl`.
    """
    at_least_zero = {
        "initial_accumulator_value": initial_accumulator_value,
        "l1_regularization_strength": l1_regularization_strength,
        "l2_regularization_strength": l2_regularization_strength,
        "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        "beta": beta,
    }
    for name, value in at_least_zero.items():
        if value < 0.0:
            raise ArgumentError(f"`{name}` needs to be positive or zero. Given: {value}.")
    if learning_rate_power > 0.0:
        raise ArgumentError(f"`learning_rate_power` needs to be negative or zero. Given: {learning_rate_power}.")

    def init(params: Any) -> FtrlState:
        return FtrlState(
            step=jnp.zeros((), jnp.int32),
            accumulators=jax.tree.map(lambda w: jnp.full_like(w, initial_accumulator_value), params),
            linear=jax.tree.map(jnp.zeros_like, params),
        )

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, FtrlState]:
        if params is None:
            raise ArgumentError("ftrl needs the parameters: call update(gradients, state, params).")
        rate: Any = learning_rate(state.step) if callable(learning_rate) else learning_rate
        l2 = l2_regularization_strength + beta / (2.0 * rate)

        def leaf(gradient: Any, weight: Any, accumulator: Any, linear: Any) -> tuple[Any, Any, Any]:
            shrunk = gradient + 2.0 * l2_shrinkage_regularization_strength * weight
            new_accumulator = accumulator + gradient * gradient
            powers = new_accumulator**-learning_rate_power - accumulator**-learning_rate_power
            new_linear = linear + shrunk - powers / rate * weight
            quadratic = new_accumulator**-learning_rate_power / rate + 2.0 * l2
            clipped = jnp.clip(new_linear, -l1_regularization_strength, l1_regularization_strength)
            return (clipped - new_linear) / quadratic - weight, new_accumulator, new_linear

        stepped = jax.tree.map(leaf, updates, params, state.accumulators, state.linear)
        changes, accumulators, linears = (
            jax.tree.map(lambda _, parts, place=place: parts[place], updates, stepped) for place in range(3)
        )
        return changes, FtrlState(state.step + 1, accumulators, linears)

    return optax.GradientTransformation(init, update)


def adagrad(
    learning_rate: optax.ScalarOrSchedule = 0.001, *, initial_accumulator_value: float = 0.1, epsilon: float = 1e-7
) -> optax.GradientTransformation:
    """Returns Adagrad like `tf.keras.optimizers.Adagrad`, which also allows an accumulator that begins at 0.

    Args:
        learning_rate: a number or an optax schedule.
        initial_accumulator_value: the initial sum of squared gradients.
        epsilon: the number that is added to the square root. `optax.adagrad` adds it under the root.

    Example:
        >>> import jax.numpy as jnp
        >>> optimizer = adagrad(0.05)
        >>> weight = jnp.array(1.0)
        >>> update, _ = optimizer.update(jnp.array(2.0), optimizer.init(weight), weight)
        >>> round(float(weight + update), 6)
        0.950613
    """

    def init(params: Any) -> optax.ScaleByRssState:
        return optax.ScaleByRssState(
            sum_of_squares=jax.tree.map(lambda w: jnp.full_like(w, initial_accumulator_value), params)
        )

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, optax.ScaleByRssState]:
        totals = jax.tree.map(lambda total, g: total + g * g, state.sum_of_squares, updates)
        scaled = jax.tree.map(lambda g, total: g / (jnp.sqrt(total) + epsilon), updates, totals)
        return scaled, optax.ScaleByRssState(sum_of_squares=totals)

    return optax.chain(optax.GradientTransformation(init, update), optax.scale_by_learning_rate(learning_rate))


def adam(
    learning_rate: optax.ScalarOrSchedule = 0.001, *, b1: float = 0.9, b2: float = 0.999, epsilon: float = 1e-7
) -> optax.GradientTransformation:
    """Returns Adam like TensorFlow. Small gradients cause smaller steps than with `optax.adam`.

    Args:
        learning_rate: a number or an optax schedule.
        b1: the decay rate of the first moment.
        b2: the decay rate of the second moment.
        epsilon: added to the square root of the second moment before its bias correction. `optax.adam` adds it after
            the correction. The default of `tf.train.AdamOptimizer` is 1e-8, that of `tf.keras.optimizers.Adam` is 1e-7.

    Example:
        >>> import jax.numpy as jnp
        >>> optimizer = adam(0.05)
        >>> weight = jnp.array(1.0)
        >>> update, _ = optimizer.update(jnp.array(1e-7), optimizer.init(weight), weight)
        >>> round(float(weight + update), 6)
        0.998467
    """
    moments = optax.scale_by_adam(b1, b2)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        rate: Any = learning_rate(state.count) if callable(learning_rate) else learning_rate
        after: Any = moments.update(updates, state, params)[1]
        steps = after.count.astype(jnp.float32)
        corrected = rate * jnp.sqrt(1.0 - b2**steps) / (1.0 - b1**steps)
        moved = jax.tree.map(lambda m, v: -corrected * m / (jnp.sqrt(v) + epsilon), after.mu, after.nu)
        return moved, after

    return optax.GradientTransformation(moments.init, update)
