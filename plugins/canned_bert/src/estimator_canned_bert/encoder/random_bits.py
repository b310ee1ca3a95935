"""Random bits for masks: four values of 16 bits from each hash of the generator, where jax draws one."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.extend.random import threefry2x32_p

_VALUES_OF_A_HASH = 4
#: Places that a word of 32 bits tells apart.
_MOST = 1 << 32


def bits_of_16(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Uniform random uint16 of a shape. They depend on the key and the place in the array, not on its sharding.

    `jax.random.bits` computes a hash of 64 bits for each value and keeps 16 of them. It draws here, too, where the
    generator is not threefry2x32, or where the first axis or all others have more hashes than a word of 32 bits counts.

    Args:
        key: of `jax.random`.
        shape: of the array.

    Example:
        >>> bits = bits_of_16(jax.random.key(0), (2, 6))
        >>> bits.shape, str(bits.dtype), bool((bits == bits_of_16(jax.random.key(0), (3, 6))[:2]).all())
        ((2, 6), 'uint16', True)

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
    """
    hashes = (*shape[:-1], -(-shape[-1] // _VALUES_OF_A_HASH)) if shape else ()
    too_many = max(_count(hashes[:1]), _count(hashes[1:])) > _MOST
    if not shape or too_many or str(jax.random.key_impl(key)) != "threefry2x32":
        return jax.random.bits(key, shape, jnp.uint16)
    high, low = jax.random.key_data(key)
    words = threefry2x32_p.bind(high, low, *_counters(hashes))
    # Side by side along the last axis, not as an axis of four: TPUs would pad that to 128.
    halves = [half.astype(jnp.uint16) for word in words for half in (word & 0xFFFF, word >> 16)]
    return jnp.concatenate(halves, axis=-1)[..., : shape[-1]]


def _count(shape: tuple[int, ...]) -> int:
    """The number of places, without axes of unknown length, which exports may have."""
    return math.prod(length for length in shape if isinstance(length, int))


def _counters(shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Two words for each place, unlike those of all others."""
    if _count(shape) <= _MOST:
        return jnp.zeros(shape, jnp.uint32), _places(shape)
    first = jax.lax.broadcasted_iota(jnp.uint32, shape, 0)
    return first, jnp.broadcast_to(_places(shape[1:]), shape)


def _places(shape: tuple[int, ...]) -> jax.Array:
    """The number of each place, computed by every device for its own."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    counted = (
        jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * jnp.uint32(stride) for axis, stride in enumerate(strides)
    )
    return sum(counted, jnp.zeros(shape, jnp.uint32))
