"""Determines the trace and the memory of a JAX value. Only this file uses the trace state of JAX."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.experimental.compute_on import compute_on
from jax.extend import core as jax_core

from estimator_core._types import PyTree

# JAX caches the traces of jitted functions and scan bodies. A function that reads a variable from the active scope must
# not reuse a trace from another scope, with the values of that scope in it. So this value is part of JAX's cache keys.
# Functions that depend only on arrays, such as totals, are traced under None, once per shape.
scope_in_cache_keys: Any = jax.make_user_context(None)
_scope_numbers = itertools.count(1)
_SCOPES_REMEMBERED = 64


def trace_state() -> object:
    """Returns a value that is equal in two places exactly if no trace began or ended between them."""
    return jax_core.get_opaque_trace_state(convention="flax")


def is_traced(value: object) -> bool:
    """Returns whether a value exists only within a trace."""
    return isinstance(value, Tracer)


def is_staged() -> bool:
    """Returns whether operations are recorded here (jit, scan, eval_shape) rather than run at once."""
    return is_traced(jnp.zeros(()))


def new_cache_key() -> int | None:
    """Returns the number that separates the traces of one scope from others; None if operations run at once."""
    # Without a surrounding trace, every step opens a new scope. A new number for each would compile every operation
    # again.
    number = next(_scope_numbers) if is_staged() else None
    if number is not None and number % _SCOPES_REMEMBERED == 0:
        _forget_traces()
    return number


def _forget_traces() -> None:
    """Empties the only unlimited cache of traces in JAX, in which each scope leaves its own traces.

    Otherwise, the memory of a process that makes many Estimators would grow without limit. Traces of other functions
    are removed too, and JAX may compile those again. The public `jax.clear_caches` also drops compiled programs.
    """
    from jax._src.interpreters import partial_eval

    getattr(getattr(partial_eval, "trace_to_jaxpr", None), "cache_clear", lambda: None)()


def separate_traces(number: int | None, path: str) -> AbstractContextManager[None]:
    """Makes JAX trace functions again that it has traced under another scope or scope path."""
    return scope_in_cache_keys(None if number is None else (number, path))


def is_in_host_memory(array: jax.Array) -> bool:
    """Returns whether an array, which may be traced, is in host memory.

    Example:
        >>> import jax.numpy as jnp
        >>> is_in_host_memory(jnp.zeros(3))
        False
    """
    return jax.typeof(array).memory_space == jax.memory.Space.Host


def computed_by_host(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Returns the function, computed by the host of each device. Its results are in host memory.

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
