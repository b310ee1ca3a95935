"""In whose memory an array is: that of its device, or that of the host."""

from __future__ import annotations

from collections.abc import Callable

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


def computed_there(function: Callable[..., PyTree], *, on_host: bool) -> Callable[..., PyTree]:
    """The function, computed by the host where its result is too large for the memory of a device."""
    return compute_on("device_host")(jax.jit(function)) if on_host else function
