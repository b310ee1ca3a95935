"""Devices of which only the figures are known: a step can be traced for them if their compiler is not installed."""

from __future__ import annotations

from dataclasses import dataclass

from estimator_core.backends import Topology


class _Memory(str):
    """Equal to the name of its kind: jax compares the two where a device is not its own."""

    @property
    def kind(self) -> str:
        """Its name."""
        return str(self)


class _Client:
    """Of process 0, which plans."""

    def process_index(self) -> int:
        return 0


@dataclass(frozen=True)
class StandIn:
    """A device of which only the figures are known: enough to trace a program, not to compile one."""

    id: int
    process_index: int
    device_kind: str
    platform: str = "stand_in"
    num_cores: None = None
    client = _Client()

    def default_memory(self) -> _Memory:
        """Its own memory."""
        return _Memory("device")

    def addressable_memories(self) -> list[_Memory]:
        """Its own memory and that of its host, which tables may be in."""
        return [_Memory(kind) for kind in ("device", "pinned_host", "unpinned_host")]


def stand_ins(topology: Topology) -> list[StandIn]:
    """Stand-ins for all devices of a topology whose compiler is not installed."""
    per_host = max(1, topology.device_count // topology.host_count)
    return [StandIn(index, index // per_host, topology.figures.kind) for index in range(topology.device_count)]
