"""Random bits for masks: each hash of the generator yields four values of 16 bits, where jax uses one."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.extend.random import threefry2x32_p

_VALUES_OF_A_HASH = 4
#: The number of places that 32 bits can number.
_MOST = 1 << 32


def bits_of_16(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Returns uniform random uint16 of a shape. They depend on the key and the place in the array, not on the sharding.

    `jax.random.bits` computes a hash of 64 bits for each value and keeps 16 of them. It is the fallback if the
    generator is not threefry2x32, or if the first axis or all other axes together have more hashes than 32 bits can
    number.

    Args:
        key: a key of `jax.random`.
        shape: the shape of the array.

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
    # Concatenated along the last axis and not stacked in an axis of four, which TPUs would pad to 128.
    halves = [half.astype(jnp.uint16) for word in words for half in (word & 0xFFFF, word >> 16)]
    return jnp.concatenate(halves, axis=-1)[..., : shape[-1]]


def _count(shape: tuple[int, ...]) -> int:
    """Returns the number of places, without axes of unknown length, which exports may have."""
    return math.prod(length for length in shape if isinstance(length, int))


def _counters(shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Returns two words for each place. No other place has the same pair."""
    if _count(shape) <= _MOST:
        return jnp.zeros(shape, jnp.uint32), _places(shape)
    first = jax.lax.broadcasted_iota(jnp.uint32, shape, 0)
    return first, jnp.broadcast_to(_places(shape[1:]), shape)


def _places(shape: tuple[int, ...]) -> jax.Array:
    """Returns the number of each place. Every device computes those of its own part."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    counted = (
        jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * jnp.uint32(stride) for axis, stride in enumerate(strides)
    )
    return sum(counted, jnp.zeros(shape, jnp.uint32))
