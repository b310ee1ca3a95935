"""Devices of which only the figures are known: a step can be traced for them if their compiler is not installed."""

from __future__ import annotations

from dataclasses import dataclass

from estimator_core.backends import Topology


@dataclass(frozen=True)
class StandIn:
    """A device of which only the figures are known: enough to trace a program, not to compile one."""

    id: int
    process_index: int
    device_kind: str
    platform: str = "stand_in"
    num_cores: None = None


def stand_ins(topology: Topology) -> list[StandIn]:
    """Stand-ins for all devices of a topology whose compiler is not installed."""
    per_host = max(1, topology.device_count // topology.host_count)
    return [StandIn(index, index // per_host, topology.figures.kind) for index in range(topology.device_count)]
