"""Totals of products that keep the rounding errors of the products.

Variances come from differences of large sums: with products rounded to float32 nothing would be left of them where the
    mean is a thousand times the deviation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from estimator_core.metrics import total

if TYPE_CHECKING:
    from jax import Array

_SPLITTER = 4097.0  # 2**12 + 1: halves the 24 bits of a float32


def product_total(*factors: Array) -> Array:
    """The total of the elementwise product of one to three float32 arrays of one shape, to about 2**-44.

    Example:
        >>> import jax.numpy as jnp
        >>> from estimator_core.metrics import total_value
        >>> x = jnp.array([4097.0])
        >>> float(total_value(product_total(x, x)))
        16785409.0

    Source: T. Dekker, "A floating-point technique for extending the available precision", 1971.
    """
    terms: list[Any] = [jnp.asarray(factors[0], jnp.float32)]
    for factor in factors[1:]:
        other = jnp.asarray(factor, jnp.float32)
        product, error = _exact_product(terms[0], other)
        terms = [product, error, *(term * other for term in terms[1:])]
    return total(jnp.stack(terms))


def _exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(a: Any) -> tuple[Any, Any]:
    shifted = _SPLITTER * a
    high = shifted - (shifted - a)
    return high, a - high
