"""Results of a program, in host memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from estimator_core._types import PyTree


def fetched(tree: PyTree) -> PyTree:
    """As `jax.device_get`: the tree with numpy arrays. It waits for them.

    `jax.device_get` starts a copy of every array first, which hides the way from an accelerator. On a CPU it takes
    tens of microseconds for nothing, more than a small model needs.

    Example:
        >>> import jax.numpy as jnp
        >>> fetched({"a": jnp.arange(2)})
        {'a': array([0, 1], dtype=int32)}
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    if not all(isinstance(leaf, jax.Array) and _is_plain(leaf) for leaf in leaves):
        return jax.device_get(tree)
    return structure.unflatten([np.asarray(leaf) for leaf in leaves])


def fetcher(like: PyTree) -> Callable[[PyTree], PyTree]:
    """The quickest function that does what `fetched` does, for the results of the program that returned these."""
    if type(like) is dict and all(isinstance(leaf, jax.Array) and _is_plain(leaf) for leaf in like.values()):
        return _fetched_dict
    return fetched


def _fetched_dict(arrays: Any) -> Any:
    return {name: np.asarray(value) for name, value in arrays.items()}


def _is_plain(array: Any) -> bool:
    """Whether an array is in the memory of the host, and no typed random key."""
    return isinstance(array.dtype, np.dtype) and _is_of_the_host(array.sharding)


@functools.lru_cache(maxsize=64)
def _is_of_the_host(sharding: Any) -> bool:
    return sharding.is_fully_addressable and all(device.platform == "cpu" for device in sharding.device_set)
