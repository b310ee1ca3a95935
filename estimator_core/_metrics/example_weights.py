"""The mask of a padded batch, which marks the rows that are examples."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from jax import Array

    from estimator_core._types import Mask


class _Applied:
    """The mask, and whether the model has requested it."""

    def __init__(self, mask: Mask) -> None:
        # Inside a trace, where this object is created, an array of numpy is a constant like one of jax.
        self.mask, self.asked = cast("Array | None", mask), False


_active: ContextVar[_Applied | None] = ContextVar("estimator_core_example_weights", default=None)


def example_weights() -> Array | None:
    """Returns the mask of the current batch; None if it is not padded.

    float32 [batch], 1 for an example, 0 for padding.

    The functions in `ec.metrics` apply it themselves. A loss must apply it explicitly, because only its author knows
    over which values it averages.

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.example_weights import applying_example_weights, example_weights
        >>> example_weights() is None
        True
        >>> with applying_example_weights(jnp.array([1.0, 1.0, 0.0])):
        ...     print(example_weights())
        [1. 1. 0.]
    """
    applied = _active.get()
    if applied is None:
        return None
    applied.asked = True
    return applied.mask


def mask_for_metrics() -> Array | None:
    """Returns the same mask for the functions in `ec.metrics`. Reading it here does not count as use by the loss."""
    applied = _active.get()
    return None if applied is None else applied.mask


@contextmanager
def applying_example_weights(mask: Mask) -> Generator[Callable[[], bool]]:
    """Makes `mask` the value of `example_weights()` inside the block.

    Yields a function that returns whether there was a mask that the model did not request.

    Args:
        mask: [batch], 1 for an example and 0 for padding, or None.
    """
    applied = _Applied(mask)
    token = _active.set(applied)
    try:
        yield lambda: mask is not None and not applied.asked
    finally:
        _active.reset(token)
