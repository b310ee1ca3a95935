"""Puts arrays from packs on the devices of this process. Each process reads only the parts that its devices need."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding

from estimator_core._packs.boxes import Box, shape_of, whole
from estimator_core._packs.fetch import StoredArray, read_boxes

#: The number of bytes of host memory for arrays that are read together. A larger array is read alone.
_TOGETHER = 32 << 20


def place(
    arrays: Mapping[str, StoredArray], shardings: Mapping[str, Sharding] | None, dtypes: Mapping[str, Any]
) -> dict[str, jax.Array]:
    """Returns the arrays on devices. The sharding may differ from the one at the save.

    Every process reads replicated arrays itself. They are small if memory is scarce, and a broadcast would have to wait
    for the slowest process.

    Args:
        arrays: the stored arrays, by name.
        shardings: the shardings, by name. None: one device.
        dtypes: the dtypes, by name. An array of another dtype is converted.

    Raises:
        CheckpointCorruptError: an array is not what was saved.
        StorageError: an array cannot be read.
    """
    where = {name: None if shardings is None else shardings[name] for name in arrays}
    placed: dict[str, jax.Array] = {}
    for names in _together(arrays, where):
        wanted = [(name, box) for name in names for box in _boxes(arrays[name], where[name])]
        found = read_boxes([(arrays[name], box) for name, box in wanted])
        parts: dict[str, dict[Box, np.ndarray]] = {name: {} for name in names}
        for (name, box), part in zip(wanted, found, strict=True):
            parts[name][box] = part.astype(dtypes[name], copy=False)
        del found
        for name in names:
            placed[name] = _array(arrays[name].shape, where[name], parts.pop(name))
        jax.block_until_ready([placed[name] for name in names])  # otherwise host memory would stay in use
    return placed


def _together(arrays: Mapping[str, StoredArray], where: Mapping[str, Sharding | None]) -> Iterator[Sequence[str]]:
    names: list[str] = []
    held = 0
    for name, array in arrays.items():
        size = sum(math.prod(shape_of(box)) for box in _boxes(array, where[name])) * array.dtype.itemsize
        if names and held + size > _TOGETHER:
            yield names
            names, held = [], 0
        names.append(name)
        held += size
    if names:
        yield names


def _boxes(array: StoredArray, sharding: Sharding | None) -> list[Box]:
    if sharding is None:
        return [whole(array.shape)]
    indices = sharding.addressable_devices_indices_map(array.shape).values()
    return list(dict.fromkeys(_box(index, array.shape) for index in indices))


def _box(index: Any, shape: Sequence[int]) -> Box:
    return tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))


def _array(shape: tuple[int, ...], sharding: Sharding | None, parts: dict[Box, np.ndarray]) -> jax.Array:
    if sharding is None:
        return jnp.array(parts[whole(shape)], copy=True)
    left = Counter(_box(index, shape) for index in sharding.addressable_devices_indices_map(shape).values())

    def part(index: object) -> np.ndarray:
        # A device may keep the memory that it receives, so each device gets its own copy.
        box = _box(index, shape)
        left[box] -= 1
        return parts[box].copy() if left[box] else parts.pop(box)

    return jax.make_array_from_callback(shape, sharding, part)
