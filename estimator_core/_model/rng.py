"""Random keys: of variables by their path, of steps by their number, inside a step by name."""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import jax.numpy as jnp

# The generator is named, not taken from the configuration: a resumed run must draw the same numbers.
_IMPLEMENTATION = "threefry2x32"


def path_hash(path: str) -> int:
    """A 32-bit number that depends on the text alone, in every process and version of Python.

    Example:
        >>> path_hash("encoder/kernel")
        2750564309
    """
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=4).digest(), "little")


def seed_words(seed: int) -> tuple[int, int]:
    """The low and high 32 bits of a seed.

    Example:
        >>> seed_words(2**32 + 7)
        (7, 1)
    """
    return seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF


def variable_key(words: object, path: str) -> jax.Array:
    """The key of a variable's first value: a function of the seed and the path, not of what else is declared.

    Args:
        words: uint32[2], the low and high 32 bits of the seed.
        path: the variable's path.

    Example:
        >>> import numpy as np
        >>> words = np.array(seed_words(1), np.uint32)
        >>> bool((variable_key(words, "a") == variable_key(words, "b")).all())
        False
    """
    return jax.random.fold_in(_seed_key(words, "variables"), path_hash(path))


def step_key(words: Any, step: Any) -> jax.Array:
    """The key of a training step: a function of the seed and the step, so that a resumed run draws the same numbers.

    Args:
        words: uint32[2], the low and high 32 bits of the seed.
        step: a scalar, the global step before it.
    """
    return jax.random.fold_in(_seed_key(words, "steps"), step)


def named_key(key: jax.Array, name: str, count: int = 0) -> jax.Array:
    """The `count`-th key of a name within a step."""
    return jax.random.fold_in(jax.random.fold_in(key, path_hash(name)), count)


def _seed_key(words: object, purpose: str) -> jax.Array:
    low_high = jnp.asarray(words, jnp.uint32)
    key = jax.random.wrap_key_data(low_high[::-1], impl=_IMPLEMENTATION)
    return jax.random.fold_in(key, path_hash(purpose))
