"""Random bits for masks: four values of 16 bits from each hash of the generator, where jax draws one."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.extend.random import threefry2x32_p

_VALUES_OF_A_HASH = 4


def bits_of_16(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Uniform random uint16 of a shape. They depend on the key and the place in the array, not on its sharding.

    `jax.random.bits` computes a hash of 64 bits for each value and keeps 16 of them. Other generators than threefry2x32
    are asked by `jax.random.bits`.

    Args:
        key: of `jax.random`.
        shape: of one dimension at least.

    Example:
        >>> bits = bits_of_16(jax.random.key(0), (2, 6))
        >>> bits.shape, str(bits.dtype), bool((bits == bits_of_16(jax.random.key(0), (3, 6))[:2]).all())
        ((2, 6), 'uint16', True)

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
    """
    if str(jax.random.key_impl(key)) != "threefry2x32":
        return jax.random.bits(key, shape, jnp.uint16)
    *outer, last = shape
    hashes = (*outer, -(-last // _VALUES_OF_A_HASH))
    high, low = jax.random.key_data(key)
    words = threefry2x32_p.bind(high, low, jnp.zeros(hashes, jnp.uint32), _places(hashes))
    # Side by side along the last axis, not as an axis of four: TPUs would pad that to 128.
    halves = [half.astype(jnp.uint16) for word in words for half in (word & 0xFFFF, word >> 16)]
    return jnp.concatenate(halves, axis=-1)[..., :last]


def _places(shape: tuple[int, ...]) -> jax.Array:
    """The number of each place, computed by every device for its own."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    counted = (
        jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * jnp.uint32(stride) for axis, stride in enumerate(strides)
    )
    return sum(counted, jnp.zeros(shape, jnp.uint32))
