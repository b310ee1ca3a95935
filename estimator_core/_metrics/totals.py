"""Totals that stay exact for any number of examples, in any order.

A plain float32 sum changes with the order of its terms, with the number of devices and, for scatters on a GPU, from run
to run. So does a compensated sum inside `lax.reduce`, which XLA may reassociate. The terms are therefore cut into
integers on a common scale. They add up exactly in any order, and only their sums become floats again.

A total is one array whose first axis has size 2. Its dtype determines its meaning:

- uint32: a count, `low + 2**32 * high`, exact up to 2**64;
- float32: a sum in two floats, `sum + error`, accurate to about 44 bits and independent of the order.

A plain float32 counter would stop at 2**24 examples.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._jax_values import scope_in_cache_keys
from estimator_core._metrics.term_recording import note

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike

_BITS = 44  # bits below the largest term that every term keeps
_MOST_BITS = 22  # bits of one integer, which float32 converts exactly, with room for rounding
_MOST_TERMS = 2**24  # in a program for any batch size


def exact_sum(
    terms: Array, reduce: Callable[[Array], Array], *, terms_per_sum: int, axes: Sequence[int] | None = None
) -> Array:
    """Sums float32 terms with `reduce`, to 2**-44 of the largest term.

    Args:
        terms: float32.
        reduce: an unweighted sum of int32 terms, such as `jnp.sum` over axes or a segment sum.
        terms_per_sum: the largest number of terms in one sum. A symbolic size (in exports) counts as 2**24.
        axes: the axes of `terms` that share a scale. None: all axes. The other axes must broadcast against the result
            of `reduce`.

    Returns:
        float32 [2, *shape of the result of `reduce`]: the sum and its rounding error. If a term is not finite, the
        plain sum.

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.totals import exact_sum
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
    """Adds two sums that are each stored in two floats. The rounding error of the high parts is added to the low part.

    Source: Donald Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B.
    """
    high = high_a + high_b
    part = high - high_a
    error = (high_a - (high - part)) + (high_b - part)
    return high, low_a + low_b + error


def _exponent(value: Array) -> Array:
    """Returns the least e with value < 2**e, as int32; about -126 for 0."""
    return ((jax.lax.bitcast_convert_type(value, jnp.int32) >> 23) & 0xFF) - 126


def _scale(values: Array, exponent: Array) -> Array:
    """Returns the values * 2**exponent, in two steps so that neither factor leaves the range of float32."""
    half = exponent >> 1
    return values * _power_of_two(half) * _power_of_two(exponent - half)


def _power_of_two(exponent: Array) -> Array:
    return jax.lax.bitcast_convert_type((exponent + 127) << 23, jnp.float32)


def total(values: ArrayLike, weights: ArrayLike | None = None, axis: int | Sequence[int] | None = None) -> Array:
    """Sums `values * weights` exactly.

    Booleans and integers without weights return a count. They must not be negative, and their sum in one batch must be
    below 2**32. Everything else returns a compensated sum.

    Args:
        values: an array of any shape. A value with weight 0 counts as 0, even if it is not finite.
        weights: an array of any real dtype that broadcasts against `values`.
        axis: the axis or axes to sum over. None: all.

    Returns:
        A total of shape [2, *remaining axes].

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.totals import total
        >>> from estimator_core._metrics.totals import total_value
        >>> total(jnp.array([True, False, True]))
        Array([2, 0], dtype=uint32)
        >>> float(total_value(total(jnp.array([1e8, 1.0, -1e8]), jnp.array([1.0, 0.5, 1.0]))))
        0.5
    """
    # A total has no derivative, because terms are rounded to integers. No code differentiates it.
    array = jax.lax.stop_gradient(jnp.asarray(values))
    axes = _axes(axis, array.ndim)
    if weights is None and not jnp.issubdtype(array.dtype, jnp.floating):
        low = jnp.sum(array, axis=axes, dtype=jnp.uint32)
        return note(jnp.stack([low, jnp.zeros_like(low)]), array)
    terms = array.astype(jnp.float32)
    if weights is not None:
        factors = jax.lax.stop_gradient(jnp.asarray(weights, jnp.float32))
        terms = jnp.where(factors == 0, 0.0, terms * factors)
    with scope_in_cache_keys(None):
        return note(_exact_total(terms, axes), terms)


@functools.partial(jax.jit, static_argnames="axes", inline=True)
def _exact_total(terms: Array, axes: tuple[int, ...]) -> Array:
    size = math.prod(terms.shape[a] for a in axes)
    return exact_sum(terms, lambda pieces: jnp.sum(pieces, axis=axes), terms_per_sum=size, axes=axes)


def bucket_totals(buckets: ArrayLike, size: int, weights: ArrayLike | None = None) -> Array:
    """Counts the elements in each of `size` buckets, or sums their weights, exactly.

    Args:
        buckets: integers of any shape. Values outside [0, size) are ignored.
        size: the number of buckets.
        weights: an array of the same shape. None or bool (whether to count) returns counts. float returns sums in two
            floats.

    Returns:
        A total of shape [2, size].

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.totals import bucket_totals
        >>> bucket_totals(jnp.array([0, 2, 2]), 3)[0]
        Array([1, 0, 2], dtype=uint32)
    """
    flat = jnp.ravel(jnp.asarray(buckets))
    each = jnp.ones(flat.shape, bool) if weights is None else jnp.ravel(jnp.asarray(weights))
    with scope_in_cache_keys(None):
        return _bucket_totals(flat, jax.lax.stop_gradient(each), size)


@functools.partial(jax.jit, static_argnames="size", inline=True)
def _bucket_totals(buckets: Array, each: Array, size: int) -> Array:
    place = jnp.where((buckets >= 0) & (buckets < size), buckets, size)

    def add_up(pieces: Array) -> Array:
        return jax.ops.segment_sum(pieces, place, size + 1)[:size]

    if each.dtype == jnp.bool_:
        low = add_up(each.astype(jnp.uint32))
        return jnp.stack([low, jnp.zeros_like(low)])
    return exact_sum(each.astype(jnp.float32), add_up, terms_per_sum=place.size)


def merge_totals(left: Array, right: Array) -> Array:
    """Adds two totals of the same dtype and shape. Pure and traceable.

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.totals import merge_totals
        >>> merge_totals(jnp.array([2**32 - 1, 0], jnp.uint32), jnp.array([3, 1], jnp.uint32))
        Array([2, 2], dtype=uint32)
    """
    if left.dtype == jnp.uint32:
        low = left[0] + right[0]
        carry = (low < left[0]).astype(jnp.uint32)
        return jnp.stack([low, left[1] + right[1] + carry])
    high, low = add_two_floats(left[0], left[1], right[0], right[1])
    return jnp.stack([high, low])


def total_value(state: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns the value of a total, on the host in float64 (counts are exact up to 2**53).

    Example:
        >>> import numpy as np
        >>> from estimator_core._metrics.totals import total_value
        >>> float(total_value(np.array([5, 1], np.uint32)))
        4294967301.0
    """
    array = np.asarray(state)
    first, second = array[0].astype(np.float64), array[1].astype(np.float64)
    if array.dtype == np.uint32:
        return first + second * 2.0**32
    # The error term of a sum that is not finite is NaN and has no meaning.
    value: np.ndarray[Any, np.dtype[np.float64]] = np.where(np.isfinite(first), first + second, first)
    return value


def _axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(a % ndim for a in axes)
