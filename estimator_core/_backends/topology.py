"""Devices that are not present: their figures, and the contract of a backend that provides them to a compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, kw_only=True)
class DeviceFigures:
    """The published figures of one device, in jax's definition of a device.

    Attributes:
        kind: the value of `jax.Device.device_kind`.
        memory_bytes: the memory in bytes that programs can use.
        peak_flops: the floating point operations per second, by dtype name. "float32" is a float32 matrix product at
            the default precision of jax.
        memory_bandwidth: the bytes per second between the device and its memory.
        link_bandwidth: the bytes per second that a device sends to the others of its group, over all its links.
        group_size: the number of devices that those links connect. None: all devices of a topology.
        network_bandwidth: the bytes per second that a device sends beyond its group. None: a group covers a topology.
        source: the source of the figures.
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
    """A number of devices of one kind, present or not.

    Attributes:
        name: the name that users write, for example "v5e:4x4".
        device_count: the number of devices, in jax's definition.
        host_count: the number of machines that contain them.
        figures: the figures of one device.
        slice_count: the number of equal groups of devices that only a network connects.
    """

    name: str
    device_count: int
    host_count: int
    figures: DeviceFigures
    slice_count: int = 1


@runtime_checkable
class TopologyBackend(Protocol):
    """The further methods of a `Backend` whose programs can be compiled on a machine without its devices.

    `estimator plan` queries every installed backend that has these methods.
    """

    def topology_families(self) -> Sequence[str]:
        """Returns the names that may precede the shape: "v5e", "h100", ..."""
        ...

    def topology(self, family: str, shape: tuple[int, ...]) -> Topology:
        """Returns the topology of a family and shape.

        Raises:
            ArgumentError: the shape does not exist. The message lists the shapes.
        """
        ...

    def topology_devices(self, topology: Topology) -> Sequence[Any]:
        """Returns devices to compile for. They cannot run programs.

        Raises:
            BackendUnavailableError: the compiler for the devices is not installed. The message names the package to
                install.
        """
        ...
