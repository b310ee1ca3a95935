"""Sums of float32 terms that do not depend on their order, in two floats.

A plain float32 sum changes with the order of its terms, with the number of devices and, for scatters on a GPU, from run
to run. So does a compensated sum inside `lax.reduce`, which XLA may reassociate. The terms are therefore cut into
integers on a common scale. They add up exactly in any order, and only their sums become floats again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from jax import Array

_BITS = 44  # bits below the largest term that every term keeps
_MOST_BITS = 22  # bits of one integer: float32 converts them exactly, with room for rounding
_MOST_TERMS = 2**24  # in a program for any batch size


def exact_sum(
    terms: Array, reduce: Callable[[Array], Array], *, terms_per_sum: int, axes: Sequence[int] | None = None
) -> Array:
    """Sums float32 terms as `reduce` says, to 2**-44 of the largest term.

    Args:
        terms: float32.
        reduce: a sum of int32 terms without weights: `jnp.sum` over axes, a segment sum, ...
        terms_per_sum: the largest number of terms in one sum; a symbolic size, in exports, counts as 2**24.
        axes: the axes of `terms` that share a scale; None: all. The other axes must broadcast against the result of
            `reduce`.

    Returns:
        float32 [2, *shape of the reduced]: the sum and its rounding error. If a term is not finite, the plain sum.

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.exact_sum import exact_sum
        >>> exact_sum(jnp.array([1e8, 1.0, -1e8]), jnp.sum, terms_per_sum=3)
        Array([1., 0.], dtype=float32)
    """
    if terms.size == 0:
        nothing = reduce(terms)
        return jnp.stack([nothing, nothing])
    across = tuple(range(terms.ndim)) if axes is None else tuple(axes)
    largest = jnp.max(jnp.abs(terms), axis=across, keepdims=True)
    finite = jnp.isfinite(largest)
    exponent = _exponent(jnp.where(finite, largest, 0.0))
    rest = _scale(jnp.where(finite, terms, 0.0), -exponent)
    meeting = max(terms_per_sum, 1) if isinstance(terms_per_sum, int) else _MOST_TERMS
    bits = max(1, min(_MOST_BITS, 30 - math.ceil(math.log2(meeting))))
    high: Any = jnp.zeros((), jnp.float32)
    low: Any = jnp.zeros((), jnp.float32)
    for piece in range(1, math.ceil(_BITS / bits) + 1):
        whole = jnp.round(rest * 2.0 ** (bits * piece))
        rest = rest - whole * 2.0 ** (-bits * piece)
        # A sum of integers may need more than the 24 bits of a float32, so its rounding error is carried, too.
        sums = reduce(whole.astype(jnp.int32))
        near = sums.astype(jnp.float32)
        off = (sums - near.astype(jnp.int32)).astype(jnp.float32)
        unit = 2.0 ** (-bits * piece)
        high, low = add_two_floats(high, low, near * unit, off * unit)
    shared = jnp.squeeze(exponent, across)
    plain = reduce(jnp.where(finite, 0.0, terms))
    return jnp.stack([_scale(high, shared) + plain, _scale(low, shared)])


def add_two_floats(high_a: Any, low_a: Any, high_b: Any, low_b: Any) -> tuple[Any, Any]:
    """Adds two sums kept in two floats. The rounding error of the high parts goes to the low part.

    Source: Donald Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B.
    """
    high = high_a + high_b
    part = high - high_a
    error = (high_a - (high - part)) + (high_b - part)
    return high, low_a + low_b + error


def _exponent(value: Array) -> Array:
    """The least e with value < 2**e, as int32; about -126 for 0."""
    return ((jax.lax.bitcast_convert_type(value, jnp.int32) >> 23) & 0xFF) - 126


def _scale(values: Array, exponent: Array) -> Array:
    """Values * 2**exponent, in two steps so that neither factor leaves the range of float32."""
    half = exponent >> 1
    return values * _power_of_two(half) * _power_of_two(exponent - half)


def _power_of_two(exponent: Array) -> Array:
    return jax.lax.bitcast_convert_type((exponent + 127) << 23, jnp.float32)
