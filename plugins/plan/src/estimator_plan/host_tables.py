"""Tables in the memory of the host: the bytes of their rows that travel in a step."""

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
    """Bytes of rows between one device and its host, in a step, at most.

    A device that caches rows moves only those that are not in its cache, and those that leave it.

    Attributes:
        read: bytes from the host: the rows of each look-up, then those of the update with their slots.
        written: bytes to the host: the updated rows with their slots.
    """

    read: int
    written: int


def has_host_memory(devices: Sequence[Any]) -> bool:
    """Whether a program for these devices can name the memory of their host; those of absent cards cannot."""
    return any(memory.kind in HOST_KINDS for memory in devices[0].addressable_memories())


def host_rows(step: TracedStep) -> HostRows | None:
    """The rows of a step, as if all ids of the batch were distinct and of one device; None without such tables."""
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
    """The arrays of the optimizer that have a row for each row of a table."""
    members = (getattr(member, "tables", {}) for member in step.state.opt_state)
    return [leaf for tables in members for leaf in jax.tree.leaves(tables.get(name)) if leaf.shape == table.shape]


def _row_bytes(array: Any) -> int:
    return math.prod(array.shape[1:]) * array.dtype.itemsize
