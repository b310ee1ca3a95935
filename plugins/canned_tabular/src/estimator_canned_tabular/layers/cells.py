"""Recurrent cells, with the parameters and the order of gates of Keras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

import estimator_core as ec
from estimator_core.errors import check_count

State = Any


class RecurrentCell(Protocol):
    """One step of a recurrent layer."""

    def initial_state(self, batch: int) -> State:
        """Returns the state before the first step: arrays [batch, ...]."""
        ...

    def parameters(self, name: str, input_size: int) -> Any:
        """Declares the cell's variables below `name`."""
        ...

    def step(self, parameters: Any, inputs: jax.Array, state: State) -> tuple[jax.Array, State]:
        """Returns the output float32[batch, units] and the next state for inputs float32[batch, input_size]."""
        ...


@dataclass(frozen=True)
class SimpleRNNCell:
    """`tanh(x K + h R + b)`.

    Example:
        >>> SimpleRNNCell(8).initial_state(2)[0].shape
        (2, 8)

    Source: `tf.keras.layers.SimpleRNNCell`.
    """

    units: int

    def __post_init__(self) -> None:
        check_count(f"{type(self).__name__}: units", self.units)

    def initial_state(self, batch: int) -> State:
        """Returns zeros [batch, units]."""
        return (jnp.zeros((batch, self.units)),)

    def parameters(self, name: str, input_size: int) -> Any:
        """Declares the kernel, the recurrent kernel and the bias."""
        return _kernels(name, input_size, self.units, gates=1, bias=np.zeros(self.units))

    def step(self, parameters: Any, inputs: jax.Array, state: State) -> tuple[jax.Array, State]:
        """Returns the output and the next state of one step."""
        kernel, recurrent, bias = parameters
        output = jnp.tanh(inputs @ kernel + bias + state[0] @ recurrent)
        return output, (output,)


@dataclass(frozen=True)
class LSTMCell:
    """Long short-term memory. The gates are in the order input, forget, cell, output. The forget bias starts at 1.

    Example:
        >>> [part.shape for part in LSTMCell(8).initial_state(2)]
        [(2, 8), (2, 8)]

    Source: `tf.keras.layers.LSTMCell`.
    """

    units: int

    def __post_init__(self) -> None:
        check_count(f"{type(self).__name__}: units", self.units)

    def initial_state(self, batch: int) -> State:
        """Returns zeros for the output and the memory."""
        return (jnp.zeros((batch, self.units)), jnp.zeros((batch, self.units)))

    def parameters(self, name: str, input_size: int) -> Any:
        """Declares the kernel, the recurrent kernel and the bias."""
        zeros, ones = np.zeros(self.units), np.ones(self.units)
        return _kernels(name, input_size, self.units, gates=4, bias=np.concatenate([zeros, ones, zeros, zeros]))

    def step(self, parameters: Any, inputs: jax.Array, state: State) -> tuple[jax.Array, State]:
        """Returns the output and the next state of one step."""
        kernel, recurrent, bias = parameters
        output, memory = state
        gates = jnp.split(inputs @ kernel + output @ recurrent + bias, 4, axis=1)
        memory = jax.nn.sigmoid(gates[1]) * memory + jax.nn.sigmoid(gates[0]) * jnp.tanh(gates[2])
        output = jax.nn.sigmoid(gates[3]) * jnp.tanh(memory)
        return output, (output, memory)


@dataclass(frozen=True)
class GRUCell:
    """Gated recurrent unit. The gates are in the order update, reset, candidate. The reset follows the product.

    Example:
        >>> GRUCell(8).initial_state(2)[0].shape
        (2, 8)

    Source: `tf.keras.layers.GRUCell`, `reset_after=True`.
    """

    units: int

    def __post_init__(self) -> None:
        check_count(f"{type(self).__name__}: units", self.units)

    def initial_state(self, batch: int) -> State:
        """Returns zeros [batch, units]."""
        return (jnp.zeros((batch, self.units)),)

    def parameters(self, name: str, input_size: int) -> Any:
        """Declares the kernel, the recurrent kernel, and a bias for each."""
        return _kernels(name, input_size, self.units, gates=3, bias=np.zeros((2, 3 * self.units)))

    def step(self, parameters: Any, inputs: jax.Array, state: State) -> tuple[jax.Array, State]:
        """Returns the output and the next state of one step."""
        kernel, recurrent, bias = parameters
        given = jnp.split(inputs @ kernel + bias[0], 3, axis=1)
        before = jnp.split(state[0] @ recurrent + bias[1], 3, axis=1)
        update, reset = jax.nn.sigmoid(given[0] + before[0]), jax.nn.sigmoid(given[1] + before[1])
        candidate = jnp.tanh(given[2] + reset * before[2])
        output = update * state[0] + (1.0 - update) * candidate
        return output, (output,)


def _kernels(name: str, input_size: int, units: int, *, gates: int, bias: np.ndarray) -> tuple[Any, Any, Any]:
    initializers = jax.nn.initializers
    return (
        ec.get_variable(f"{name}/kernel", (input_size, gates * units), initializers.glorot_uniform()),
        ec.get_variable(f"{name}/recurrent_kernel", (units, gates * units), initializers.orthogonal()),
        ec.get_variable(f"{name}/bias", initializer=bias.astype(np.float32)),
    )
