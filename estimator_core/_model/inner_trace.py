"""Where in JAX's nest of traces we are. The only file that touches JAX's trace state."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend import core as jax_core

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
