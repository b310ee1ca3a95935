"""Devices as a grid: the axes of a mesh follow the links between the devices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh

from estimator_core._backends.partition import BATCH_AXES


def arranged(devices: Sequence[object], sizes: Mapping[str, int]) -> Mesh:
    """The mesh of these axes over all of the devices.

    Neighbours along an axis are neighbours in the hardware where jax knows the topology. Several slices are joined by a
    network only: one axis crosses it, a batch axis where the slices divide one, and every other axis stays in a slice.

    Args:
        devices: as many as the product of the sizes.
        sizes: of the axes, by name.

    Example:
        >>> dict(arranged(jax.devices()[:1], {"data": 1, "model": 1}).shape)
        {'data': 1, 'model': 1}

    Source: `jax.experimental.mesh_utils`.
    """
    shape = tuple(sizes.values())
    across = network_axes(sizes, slice_count(devices))
    if math.prod(across.values()) > 1:
        inside = [size // across[axis] for axis, size in sizes.items()]
        grid = mesh_utils.create_hybrid_device_mesh(
            inside, list(across.values()), list(devices), allow_split_physical_axes=True
        )
    else:
        grid = _within_a_slice(devices, shape)
    return Mesh(grid, tuple(sizes), axis_types=(jax.sharding.AxisType.Auto,) * len(shape))


def slice_count(devices: Sequence[object]) -> int:
    """How many groups of devices there are that only a network joins; 1 where they cannot be told apart or are uneven.

    Example:
        >>> slice_count(jax.devices()[:1])
        1
    """
    slices = [getattr(device, "slice_index", None) for device in devices]
    counts = {index: slices.count(index) for index in set(slices)}
    return len(counts) if len(set(counts.values())) == 1 else 1


def network_axes(sizes: Mapping[str, int], slices: int) -> dict[str, int]:
    """The part of each axis that crosses the network: all slices, on the first axis that they divide, batch axes first.

    Example:
        >>> network_axes({"model": 4, "data": 8}, 2)
        {'model': 1, 'data': 2}
        >>> network_axes({"model": 4, "data": 3}, 2)
        {'model': 2, 'data': 1}
    """
    order = sorted(sizes, key=lambda axis: axis not in BATCH_AXES)
    crossing = next((axis for axis in order if sizes[axis] % slices == 0), None)
    return {axis: slices if axis == crossing else 1 for axis in sizes}


def crossing_axes(mesh: Mesh) -> tuple[str, ...]:
    """The axes along which neighbours sit in different slices.

    Example:
        >>> crossing_axes(arranged(jax.devices()[:1], {"data": 1}))
        ()
    """
    slices = np.vectorize(lambda device: getattr(device, "slice_index", None) or 0, otypes=[int])(mesh.devices)
    return tuple(axis for place, axis in enumerate(mesh.axis_names) if np.diff(slices, axis=place).any())


def _within_a_slice(devices: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    plain = np.array(devices, dtype=object).reshape(shape)
    if devices[0].platform != "tpu" or not _fill_a_box(devices):
        return plain
    try:
        return mesh_utils.create_device_mesh(shape, list(devices), allow_split_physical_axes=True)
    except NotImplementedError:  # jax knows no arrangement of this shape
        return plain


def _fill_a_box(devices: Sequence[Any]) -> bool:
    """Whether the chips are a whole part of their slice, which jax requires: a mesh may use only some of the chips."""
    places = np.array([(*device.coords, device.core_on_chip) for device in devices])
    return len(devices) == np.prod(np.ptp(places, axis=0) + 1)
