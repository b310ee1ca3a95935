"""The mask of a padded batch: which of its rows are examples."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from jax import Array

_active: ContextVar[Array | None] = ContextVar("estimator_core_example_weights", default=None)


def example_weights() -> Array | None:
    """The mask of the batch that is being computed; None when nothing is padded.

    float32 [batch], 1 for an example, 0 for padding.

    The builders in `ec.metrics` apply it by themselves. A loss has to be written with it: only its author knows what it
    averages over.

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core.metrics.example_weights import applying_example_weights, example_weights
        >>> example_weights() is None
        True
        >>> with applying_example_weights(jnp.array([1.0, 1.0, 0.0])):
        ...     print(example_weights())
        [1. 1. 0.]
    """
    return _active.get()


@contextmanager
def applying_example_weights(mask: Array | None) -> Generator[None]:
    """Makes `mask` the value of `example_weights()` inside the block.

    Args:
        mask: [batch], 1 for an example and 0 for padding, or None.
    """
    token = _active.set(mask)
    try:
        yield
    finally:
        _active.reset(token)
