"""Stacks of hidden layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_core.errors import ArgumentError, check_count, is_integer

_MOMENTUM, _EPSILON = 0.999, 0.001


@dataclass(frozen=True, kw_only=True)
class DeepOptions:
    """The options of the hidden layers.

    Attributes:
        hidden_units: the number of units of each layer.
        activation_fn: the activation after each layer.
        dropout: the share of values that training drops; None: no dropout.
        batch_norm: whether each layer is followed by batch normalisation.
    """

    hidden_units: tuple[int, ...]
    activation_fn: Callable[[jax.Array], jax.Array] = jax.nn.relu
    dropout: float | None = None
    batch_norm: bool = False

    @classmethod
    def of(
        cls,
        hidden_units: Sequence[int] | None,
        activation_fn: Callable[..., Any] | None,
        dropout: float | None,
        batch_norm: bool,
    ) -> DeepOptions:
        """Returns the checked options.

        Raises:
            ArgumentError: a layer has no units, or the share is not in [0, 1).
        """
        given = () if hidden_units is None else hidden_units
        if isinstance(given, (str, int)) or not isinstance(given, Iterable):
            raise ArgumentError(
                "hidden_units must be a list of positive integers, one for each hidden layer, given: "
                f"{hidden_units!r}. For one layer write [64]."
            )
        sizes = tuple(given)
        if any(not is_integer(size) or size < 1 for size in sizes):
            raise ArgumentError(f"hidden_units must be positive integers, given: {hidden_units}.")
        units = tuple(check_count("each of hidden_units", size) for size in sizes)
        if dropout is not None and not 0.0 <= dropout < 1.0:
            raise ArgumentError(f"dropout must lie in [0, 1), given: {dropout}.")
        activation = jax.nn.relu if activation_fn is None else activation_fn
        return cls(hidden_units=units, activation_fn=activation, dropout=dropout, batch_norm=batch_norm)


def hidden_layers(inputs: jax.Array, options: DeepOptions, mode: str, *, scope: str) -> jax.Array:
    """Returns the output of the last hidden layer, float32[batch, hidden_units[-1]].

    Each layer consists of matrix product, activation, dropout and batch normalisation, in this order.
    """
    outputs = inputs
    for number, size in enumerate(options.hidden_units):
        name = f"{scope}/hiddenlayer_{number}"
        outputs = options.activation_fn(dense(outputs, size, name))
        if options.dropout and mode == ec.ModeKeys.TRAIN:
            kept = jax.random.bernoulli(ec.next_rng_key(f"{name}/dropout"), 1.0 - options.dropout, outputs.shape)
            outputs = jnp.where(kept, outputs / (1.0 - options.dropout), 0.0)
        if options.batch_norm:
            outputs = _batch_norm(outputs, f"{name}/batchnorm_{number}", mode)
    return outputs


def deep_logits(inputs: jax.Array, units: int, options: DeepOptions, mode: str, *, scope: str = "dnn") -> jax.Array:
    """Returns the logits after the hidden layers, float32[batch, units]."""
    return dense(hidden_layers(inputs, options, mode, scope=scope), units, f"{scope}/logits")


def dense(inputs: jax.Array, units: int, name: str) -> jax.Array:
    """Returns a matrix product plus a bias, float32[..., units]."""
    kernel = ec.get_variable(f"{name}/kernel", (inputs.shape[-1], units), jax.nn.initializers.glorot_uniform())
    bias = ec.get_variable(f"{name}/bias", (units,), jax.nn.initializers.zeros)
    return jnp.matmul(inputs, kernel) + bias


def _batch_norm(inputs: jax.Array, name: str, mode: str) -> jax.Array:
    size = inputs.shape[-1:]
    ones, zeros = jax.nn.initializers.ones, jax.nn.initializers.zeros
    gamma, beta = ec.get_variable(f"{name}/gamma", size, ones), ec.get_variable(f"{name}/beta", size, zeros)
    moving_mean = ec.get_variable(f"{name}/moving_mean", size, zeros, trainable=False)
    moving_variance = ec.get_variable(f"{name}/moving_variance", size, ones, trainable=False)
    mean, variance = moving_mean, moving_variance
    if mode == ec.ModeKeys.TRAIN:
        mean, variance = jnp.mean(inputs, axis=0), jnp.var(inputs, axis=0)
        ec.set_variable(f"{name}/moving_mean", _MOMENTUM * moving_mean + (1.0 - _MOMENTUM) * mean)
        ec.set_variable(f"{name}/moving_variance", _MOMENTUM * moving_variance + (1.0 - _MOMENTUM) * variance)
    return (inputs - mean) * jax.lax.rsqrt(variance + _EPSILON) * gamma + beta
