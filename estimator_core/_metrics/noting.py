"""Notes the terms of totals while a step is traced, so that totals of many metrics can be computed together."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax

if TYPE_CHECKING:
    from jax import Array


class Noted(NamedTuple):
    """A total over all of an array.

    Attributes:
        result: [2], what `total` returned.
        terms: what it sums.
    """

    result: Array
    terms: Array


#: Of more terms than this a sum takes longer than starting it does.
_MOST_TERMS = 4096
_open: ContextVar[list[Noted] | None] = ContextVar("estimator_core_noted_totals", default=None)


@contextmanager
def noting() -> Generator[list[Noted]]:
    """Yields a list, to which the small totals that are computed inside the block are added."""
    found: list[Noted] = []
    # Terms of a function within the model may be among them, and are left alone. A search for leaks would name them.
    token = _open.set(None if cast(Any, jax.config).jax_check_tracer_leaks else found)
    try:
        yield found
    finally:
        _open.reset(token)


def note(result: Array, terms: Array) -> Array:
    """Notes a total, and returns it."""
    found = _open.get()
    if found is not None and result.shape == (2,) and terms.size <= _MOST_TERMS:
        found.append(Noted(result, terms))
    return result
