"""How a table of rows is split over the devices of the current mesh."""

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
        count: how many parts there are.
        rows: rows of the table.
    """

    mesh: AbstractMesh
    axes: tuple[str, ...]
    count: int
    rows: int

    @property
    def part(self) -> int:
        """Rows of one device."""
        return self.rows // self.count

    @property
    def by_rows(self) -> PartitionSpec:
        """The partition of arrays whose first axis is split."""
        return PartitionSpec(self.axes)


def current_split(rows: int, axes: tuple[str, ...]) -> Split | None:
    """The split of a table over the current mesh: see `split_over`."""
    return split_over(jax.sharding.get_abstract_mesh(), rows, axes)


def split_over(mesh: Any, rows: int, axes: tuple[str, ...]) -> Split | None:
    """The split of a table with so many rows; None where each device holds all of them.

    That is so outside a mesh, along axes of one device, and for rows that do not divide, as partition rules have it.
    """
    there = tuple(axis for axis in axes if axis in mesh.shape)
    count = math.prod(mesh.shape[axis] for axis in there)
    return None if count == 1 or rows % count else Split(mesh=mesh, axes=there, count=count, rows=rows)
