"""Tables in the memory of the host: the bytes of their rows that are transferred in a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from estimator_core.lowering import TracedStep
from estimator_plan.memory import HOST_KINDS, in_host_memory


@dataclass(frozen=True, kw_only=True)
class HostRows:
    """The largest number of bytes of rows between one device and its host in a step.

    A device that caches rows transfers only rows that are not in its cache, and rows that leave it.

    Attributes:
        read: the bytes from the host: the rows of each look-up, then the rows of the update with their slots.
        written: the bytes to the host: the updated rows with their slots.
    """

    read: int
    written: int


def has_host_memory(devices: Sequence[Any]) -> bool:
    """Returns whether a program for these devices can name the memory of their host. Absent GPUs cannot."""
    return any(memory.kind in HOST_KINDS for memory in devices[0].addressable_memories())


def host_rows(step: TracedStep) -> HostRows | None:
    """Returns the rows of a step, as if all ids of a batch were distinct and of one device. None without tables."""
    read = written = 0
    tables = {name: leaf for name, leaf in step.state.variables.items() if in_host_memory(leaf)}
    for key, shape in step.lookups.items():
        name = key.rpartition("#")[0]
        if name in tables:
            rows, table = math.prod(shape[:-1]), tables[name]
            updated = rows * sum(map(_row_bytes, (table, *_slots(step, name, table))))
            read, written = read + rows * _row_bytes(table) + updated, written + updated
    return HostRows(read=read, written=written) if tables else None


def _slots(step: TracedStep, name: str, table: Any) -> list[Any]:
    """Returns the arrays of the optimizer that have a row for each row of a table."""
    members = (getattr(member, "tables", {}) for member in step.state.opt_state)
    return [leaf for tables in members for leaf in jax.tree.leaves(tables.get(name)) if leaf.shape == table.shape]


def _row_bytes(array: Any) -> int:
    return math.prod(array.shape[1:]) * array.dtype.itemsize
