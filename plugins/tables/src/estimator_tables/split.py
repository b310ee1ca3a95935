"""The split of the rows of a table over the devices of the current mesh."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import AbstractMesh, PartitionSpec


@dataclass(frozen=True, kw_only=True)
class Split:
    """The parts of a table: each device along `axes` holds `part` consecutive rows.

    Attributes:
        mesh: the current mesh.
        axes: the axes of the mesh that split the rows.
        count: the number of parts.
        rows: the number of rows of the table.
    """

    mesh: AbstractMesh
    axes: tuple[str, ...]
    count: int
    rows: int

    @property
    def part(self) -> int:
        """The number of rows of one device."""
        return self.rows // self.count

    @property
    def by_rows(self) -> PartitionSpec:
        """The partition of arrays whose first axis is split."""
        return PartitionSpec(self.axes)


def current_split(rows: int, axes: tuple[str, ...]) -> Split | None:
    """Returns the split of a table over the current mesh: see `split_over`."""
    return split_over(jax.sharding.get_abstract_mesh(), rows, axes)


def split_over(mesh: Any, rows: int, axes: tuple[str, ...]) -> Split | None:
    """Returns the split of a table with this number of rows; None: each device holds all rows.

    Each device holds all rows outside a mesh, along axes of one device, and if the rows are not divisible by the
    devices. Partition rules have the same behaviour.
    """
    there = tuple(axis for axis in axes if axis in mesh.shape)
    count = math.prod(mesh.shape[axis] for axis in there)
    return None if count == 1 or rows % count else Split(mesh=mesh, axes=there, count=count, rows=rows)
