"""Where a value of JAX is: in which of its traces, and in whose memory. The only file that touches trace state."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jax.experimental.compute_on import compute_on
from jax.extend import core as jax_core

from estimator_core._types import PyTree

_P = ParamSpec("_P")

# JAX keeps the traces of jitted functions, scan bodies and the like. A function that reads a variable from the active
# scope must not be served from a trace made under another scope, with that scope's values in it: this value is part of
# JAX's cache keys.
_scope_in_cache_keys: Any = jax.make_user_context(None)
_scope_numbers = itertools.count(1)


def trace_state() -> object:
    """Something that is equal in two places exactly if no trace began or ended between them."""
    return jax_core.get_opaque_trace_state(convention="flax")


def is_traced(value: object) -> bool:
    """Whether a value exists only within a trace."""
    return isinstance(value, Tracer)


def is_staged() -> bool:
    """Whether operations are being recorded here (jit, scan, eval_shape), rather than run at once."""
    return is_traced(jnp.zeros(()))


def new_cache_key() -> int | None:
    """The number that keeps the traces of one scope apart; None where operations run at once."""
    # Without a trace around us every step opens a new scope: a new number each would compile every operation again.
    return next(_scope_numbers) if is_staged() else None


def separate_traces(number: int | None, path: str) -> AbstractContextManager[None]:
    """Makes JAX trace functions again that it has traced under another scope or scope path."""
    return _scope_in_cache_keys(None if number is None else (number, path))


def traced_once(*static: str) -> Callable[[Callable[_P, Array]], Callable[_P, Array]]:
    """A decorator of functions of arrays that read no variable: each is traced once for a kind of arguments.

    A model_fn is traced several times a call, in a scope of its own each time. Its metrics are most of what is traced.

    Args:
        static: names of the parameters that are not arrays.

    Example:
        >>> import jax.numpy as jnp
        >>> float(traced_once("power")(lambda x, power: x**power)(jnp.array(3.0), power=2))
        9.0
    """

    def decorate(function: Callable[_P, Array]) -> Callable[_P, Array]:
        traced = jax.jit(function, static_argnames=static, inline=True)

        @functools.wraps(function)
        def call(*arguments: _P.args, **named: _P.kwargs) -> Array:
            with _scope_in_cache_keys(None):
                return traced(*arguments, **named)

        return call

    return decorate


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
