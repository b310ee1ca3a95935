"""Records the terms of totals while a step is traced, so that totals of many metrics can be computed together."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax

if TYPE_CHECKING:
    from jax import Array


class Noted(NamedTuple):
    """A total over all elements of an array.

    Attributes:
        result: float32 or uint32 [2], the result of `total`.
        terms: the terms of the sum.
    """

    result: Array
    terms: Array


#: For more terms than this, a sum takes longer than its start.
_MOST_TERMS = 4096
_open: ContextVar[list[Noted] | None] = ContextVar("estimator_core_noted_totals", default=None)


@contextmanager
def noting() -> Generator[list[Noted]]:
    """Yields a list, to which the small totals that are computed inside the block are added."""
    found: list[Noted] = []
    # Terms inside a function of the model may be among them, and stay unused. A search for leaks would report them.
    token = _open.set(None if cast(Any, jax.config).jax_check_tracer_leaks else found)
    try:
        yield found
    finally:
        _open.reset(token)


def note(result: Array, terms: Array) -> Array:
    """Records a total, and returns it."""
    found = _open.get()
    if found is not None and result.shape == (2,) and terms.size <= _MOST_TERMS:
        found.append(Noted(result, terms))
    return result
