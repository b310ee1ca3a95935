"""Copies the results of a program to host memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from estimator_core._types import PyTree


def fetched(tree: PyTree) -> PyTree:
    """Returns the tree with numpy arrays, like `jax.device_get`. It waits for them.

    `jax.device_get` first starts a copy of every array, which hides the transfer time of an accelerator. On a CPU this
    has no effect and takes tens of microseconds, more than a small model needs.

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
    """Returns the fastest function with the effect of `fetched`, for results like these of the same program."""
    if type(like) is dict and all(isinstance(leaf, jax.Array) and _is_plain(leaf) for leaf in like.values()):
        return _fetched_dict
    return fetched


def _fetched_dict(arrays: Any) -> Any:
    return {name: np.asarray(value) for name, value in arrays.items()}


def _is_plain(array: Any) -> bool:
    """Returns whether an array is in host memory and is not a typed random key."""
    return isinstance(array.dtype, np.dtype) and _is_of_the_host(array.sharding)


@functools.lru_cache(maxsize=64)
def _is_of_the_host(sharding: Any) -> bool:
    return sharding.is_fully_addressable and all(device.platform == "cpu" for device in sharding.device_set)
