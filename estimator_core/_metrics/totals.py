"""Totals that stay exact however many examples they cover.

A total is one array whose first axis has size 2. Its dtype says what it is:

- uint32: a count, `low + 2**32 * high`, exact up to 2**64;
- float32: a sum in two floats, `sum + error`, good to about 44 bits and the same in any order (see `exact_sum.py`).

A plain float32 counter would stop at 2**24 examples.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._metrics.exact_sum import add_two_floats, exact_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jax import Array
    from jax.typing import ArrayLike


def total(values: ArrayLike, weights: ArrayLike | None = None, axis: int | Sequence[int] | None = None) -> Array:
    """Sums `values * weights` exactly.

    Booleans and integers (not negative, below 2**32 in the sum of one batch) without weights give a count, everything
    else a compensated sum.

    Args:
        values: any shape. A value whose weight is 0 counts as 0, even if it is not finite.
        weights: broadcast against `values`; any real dtype.
        axis: the axis or axes to sum over; None: all.

    Returns:
        A total of shape [2, *the axes that stay].

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.totals import total
        >>> from estimator_core._metrics.totals import total_value
        >>> total(jnp.array([True, False, True]))
        Array([2, 0], dtype=uint32)
        >>> float(total_value(total(jnp.array([1e8, 1.0, -1e8]), jnp.array([1.0, 0.5, 1.0]))))
        0.5
    """
    array = jnp.asarray(values)
    axes = _axes(axis, array.ndim)
    if weights is None and not jnp.issubdtype(array.dtype, jnp.floating):
        low = jnp.sum(array, axis=axes, dtype=jnp.uint32)
        return jnp.stack([low, jnp.zeros_like(low)])
    terms = array.astype(jnp.float32)
    if weights is not None:
        factors = jnp.asarray(weights, jnp.float32)
        terms = jnp.where(factors == 0, 0.0, terms * factors)
    size = math.prod(terms.shape[a] for a in axes)
    return exact_sum(terms, lambda pieces: jnp.sum(pieces, axis=axes), terms_per_sum=size, axes=axes)


def bucket_totals(buckets: ArrayLike, size: int, weights: ArrayLike | None = None) -> Array:
    """Counts (or sums the weights of) the elements that fall into each of `size` buckets, exactly.

    Args:
        buckets: integers of any shape; one outside [0, size) counts nowhere.
        size: the number of buckets.
        weights: the shape of `buckets`; bool (whether to count) or None give a count, float a sum in two floats.

    Returns:
        A total of shape [2, size].

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core._metrics.totals import bucket_totals
        >>> bucket_totals(jnp.array([0, 2, 2]), 3)[0]
        Array([1, 0, 2], dtype=uint32)
    """
    flat = jnp.ravel(jnp.asarray(buckets))
    flat = jnp.where((flat >= 0) & (flat < size), flat, size)
    each = jnp.ones(flat.shape, bool) if weights is None else jnp.ravel(jnp.asarray(weights))

    def add_up(pieces: Array) -> Array:
        return jax.ops.segment_sum(pieces, flat, size + 1)[:size]

    if each.dtype == jnp.bool_:
        low = add_up(each.astype(jnp.uint32))
        return jnp.stack([low, jnp.zeros_like(low)])
    return exact_sum(each.astype(jnp.float32), add_up, terms_per_sum=flat.size)


def merge_totals(left: Array, right: Array) -> Array:
    """Adds two totals of one dtype and shape; pure and traceable.

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
    """The value of a total, on the host in float64 (counts are exact up to 2**53).

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
    # The error term of a sum that is not finite is NaN and says nothing.
    value: np.ndarray[Any, np.dtype[np.float64]] = np.where(np.isfinite(first), first + second, first)
    return value


def _axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(a % ndim for a in axes)
