"""The devices of a compiled program: the mesh axes that a group spans, and whether a network joins it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jax.sharding import Mesh

from estimator_core.backends import Topology


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The devices of a mesh, by their numbers in the mesh.

    Attributes:
        axes: the sizes of the axes of the mesh by name. The numbers count through the axes, the last axis fastest.
        joined: for each number, the group of devices that fast links join.
    """

    axes: dict[str, int]
    joined: Sequence[int]

    def of_mesh(self, groups: Sequence[Sequence[int]], device_count: int) -> Sequence[Sequence[int]]:
        """Converts groups of devices from the numbers of a program to the numbers of the mesh.

        libtpu compiles one program for all slices. It numbers only the devices of one slice, in the order of the mesh.

        Args:
            groups: the groups, by the numbers of the program.
            device_count: the number of devices in the program's numbering: all, or those of one slice.

        Example:
            >>> layout = Layout(axes={"fsdp": 2, "stage": 2}, joined=[0, 1, 0, 1])
            >>> layout.of_mesh([[0, 1]], 2), layout.of_mesh([[0, 1], [2, 3]], 4)
            ([[0, 2], [1, 3]], [[0, 1], [2, 3]])
        """
        slices: dict[int, list[int]] = {}
        for number, joined in enumerate(self.joined):
            slices.setdefault(joined, []).append(number)
        if any(len(devices) != device_count for devices in slices.values()):
            return groups
        return [[devices[number] for number in group] for devices in slices.values() for group in groups]

    def spanned(self, groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
        """Returns the axes along which members of one group differ, in the order of the mesh.

        Example:
            >>> layout = Layout(axes={"data": 2, "model": 2}, joined=[0, 0, 1, 1])
            >>> layout.spanned([[0, 2], [1, 3]]), layout.spanned([[0, 1, 2, 3]])
            (('data',), ('data', 'model'))
        """
        shape = tuple(self.axes.values())
        differ = [False] * len(shape)
        for group in groups:
            places = np.array(np.unravel_index(list(group), shape))
            differ = [found or bool(np.ptp(along)) for found, along in zip(differ, places, strict=True)]
        return tuple(name for name, found in zip(self.axes, differ, strict=True) if found)

    def crosses(self, groups: Sequence[Sequence[int]]) -> bool:
        """Returns whether only the network joins some members of one group.

        Example:
            >>> Layout(axes={"data": 4}, joined=[0, 0, 1, 1]).crosses([[0, 1], [2, 3]])
            False
        """
        return any(len({self.joined[number] for number in group}) > 1 for group in groups)

    def across(self) -> tuple[int, tuple[str, ...]]:
        """Returns the number of groups that a network joins, and the axes of the mesh that cross the network.

        Example:
            >>> Layout(axes={"data": 2, "model": 2}, joined=[0, 0, 1, 1]).across()
            (2, ('data',))
        """
        grid = np.array(self.joined).reshape(tuple(self.axes.values()))
        axes = tuple(name for place, name in enumerate(self.axes) if np.diff(grid, axis=place).any())
        return len(set(self.joined)), axes


def layout_of(mesh: Mesh, topology: Topology) -> Layout:
    """Returns the layout of a program that is compiled for a mesh of the devices of a topology."""
    devices = list(mesh.devices.flat)
    size = topology.figures.group_size or topology.device_count
    if topology.slice_count > 1:  # a stand-in has no slice_index
        size = topology.device_count // topology.slice_count
        joined = [int(getattr(device, "slice_index", device.id // size)) for device in devices]
    else:
        joined = [device.id // size for device in devices]
    return Layout(axes=dict(mesh.shape), joined=joined)
