"""In whose memory an array is: that of its device, or that of the host."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.compute_on import compute_on

from estimator_core._types import PyTree


def is_in_host_memory(array: jax.Array) -> bool:
    """Whether an array, also one of a trace, is in the memory of the host.

    Example:
        >>> import jax.numpy as jnp
        >>> is_in_host_memory(jnp.zeros(3))
        False
    """
    return jax.typeof(array).memory_space == jax.memory.Space.Host


def computed_by_host(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """The function, computed by the host of each device. Its results are in the memory of the host.

    Example:
        >>> import jax.numpy as jnp
        >>> is_in_host_memory(jax.jit(computed_by_host(jnp.sin))(jax.device_put(1.0, jax.memory.Space.Host)))
        True
    """
    compute: Any = compute_on
    if "out_memory_spaces" in inspect.signature(compute_on).parameters:  # from jax 0.12 on
        return compute(jax.jit(function), compute_type="device_host", out_memory_spaces=jax.memory.Space.Host)
    found: Callable[..., PyTree] = compute("device_host")(jax.jit(function))

    def on_host(*arguments: PyTree) -> PyTree:
        return jax.tree.map(lambda leaf: jax.device_put(leaf, jax.memory.Space.Host), found(*arguments))

    return on_host
