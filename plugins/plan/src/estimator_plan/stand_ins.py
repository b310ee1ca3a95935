"""Devices of which only the figures are known. A step can be traced for them without their compiler."""

from __future__ import annotations

from dataclasses import dataclass

from estimator_core.backends import Topology


class _Memory(str):
    """A memory that is equal to the name of its kind, because jax compares the two for devices that are not its own."""

    @property
    def kind(self) -> str:
        """The name of the kind."""
        return str(self)


class _Client:
    """The client of process 0, which makes the plan."""

    def process_index(self) -> int:
        return 0


@dataclass(frozen=True)
class StandIn:
    """A device of which only the figures are known. A program can be traced for it, but not compiled."""

    id: int
    process_index: int
    device_kind: str
    platform: str = "stand_in"
    num_cores: None = None
    client = _Client()

    def default_memory(self) -> _Memory:
        """Returns the memory of the device."""
        return _Memory("device")

    def addressable_memories(self) -> list[_Memory]:
        """Returns the memory of the device and that of its host, in which tables may be."""
        return [_Memory(kind) for kind in ("device", "pinned_host", "unpinned_host")]


def stand_ins(topology: Topology) -> list[StandIn]:
    """Returns stand-ins for all devices of a topology whose compiler is not installed."""
    per_host = max(1, topology.device_count // topology.host_count)
    return [StandIn(index, index // per_host, topology.figures.kind) for index in range(topology.device_count)]
