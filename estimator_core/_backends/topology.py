"""Devices that are not there: what a backend knows of them, and the contract by which it lends them to a compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, kw_only=True)
class DeviceFigures:
    """Published figures of one device, as jax counts devices.

    Attributes:
        kind: what `jax.Device.device_kind` says.
        memory_bytes: memory that programs can use.
        peak_flops: floating point operations a second by dtype name; "float32" is a float32 matrix product at jax's
            default precision.
        memory_bandwidth: bytes a second between the device and its memory.
        link_bandwidth: bytes a second that a device sends to the others of its group, all its links together.
        group_size: devices that those links join; None: all of a topology.
        network_bandwidth: bytes a second that a device sends beyond its group; None where groups cover a topology.
        source: where the figures come from.
    """

    kind: str
    memory_bytes: int
    peak_flops: Mapping[str, float]
    memory_bandwidth: float
    link_bandwidth: float
    group_size: int | None = None
    network_bandwidth: float | None = None
    source: str


@dataclass(frozen=True, kw_only=True)
class Topology:
    """So many devices of one kind, present or not.

    Attributes:
        name: as users write it, for example "v5e:4x4".
        device_count: as jax counts devices.
        host_count: machines they sit in.
        figures: of one device.
        slice_count: equal groups of devices that only a network joins.
    """

    name: str
    device_count: int
    host_count: int
    figures: DeviceFigures
    slice_count: int = 1


@runtime_checkable
class TopologyBackend(Protocol):
    """What a backend offers besides `Backend` when programs can be compiled for its devices on a machine without them.

    `estimator plan` asks every installed backend that has these methods.
    """

    def topology_families(self) -> Sequence[str]:
        """The names that may stand before the shape: "v5e", "h100", ..."""
        ...

    def topology(self, family: str, shape: tuple[int, ...]) -> Topology:
        """The topology of a family and shape.

        Raises:
            ArgumentError: there is no such shape; says which there are.
        """
        ...

    def topology_devices(self, topology: Topology) -> Sequence[Any]:
        """Devices to compile for. Nothing can run on them.

        Raises:
            BackendUnavailableError: the compiler for them is not installed; says what to install.
        """
        ...
