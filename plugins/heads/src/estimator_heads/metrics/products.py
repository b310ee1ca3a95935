"""Totals of products that keep the rounding errors of the products.

A variance is a difference of large sums. With products rounded to float32, a variance is lost if the mean is a thousand
times the deviation. With sums of 44 bits, it is lost if the mean is a million times the deviation.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from estimator_core.metrics import total

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import ArrayLike

_SPLITTER = 4097.0  # 2**12 + 1: splits the 24 bits of a float32 in half


def product_total(*factors: Array) -> Array:
    """Returns the total of the elementwise product of one to three float32 arrays of one shape, to about 2**-44.

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


def moment_parts(weights: Array, *factors: Array) -> Array:
    """Returns the exact totals of the parts of a product of weights and one or two factors.

    Numbers are split into halves of 12 bits, whose products float32 represents exactly. The parts add up to the sum of
    the products without any rounding, up to 2**24 examples whose weights are within a factor of 2**20.

    Args:
        weights: float32 of any shape.
        factors: one or two arrays of the shape of `weights`.

    Returns:
        Totals of shape [2, parts]. `moment` returns their sum.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.array([1e7, 1e7 + 1])
        >>> moment(moment_parts(jnp.ones(2), x, x)) == 10**14 + (10**7 + 1) ** 2
        True
    """
    halves = [_halves(jnp.asarray(factor, jnp.float32)) for factor in factors]
    products: list[Any] = [jnp.ones((), jnp.float32)]
    for pair in halves:
        products = [product * half for product in products for half in pair]
    weight = jnp.asarray(weights, jnp.float32)
    parts = [part for product in products for part in _exact_product(weight, product)]
    return total(jnp.stack(parts).reshape(len(parts), -1), axis=1)


def moment(parts: ArrayLike) -> Fraction | None:
    """Returns the exact sum of the result of `moment_parts`, or None if it is not finite."""
    values = np.asarray(parts).reshape(-1).tolist()
    return sum(map(Fraction, values), Fraction()) if all(map(math.isfinite, values)) else None


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
