"""An estimate of the time of a step: work divided by the peak figures of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from estimator_core.backends import DeviceFigures
from estimator_plan.collectives import Collective


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """The seconds of one step during which each resource of a device is busy at its peak. None if not known.

    Attributes:
        compute: the seconds of matrix products and convolutions.
        memory: the seconds of traffic with the memory of the device.
        links: the seconds of collectives over the fast links between devices.
        network: the seconds of collectives over the network between machines.
    """

    compute: float | None
    memory: float | None
    links: float | None
    network: float | None

    @property
    def at_least(self) -> float | None:
        """The shortest time of a step: that of the busiest resource, if all others overlap with it."""
        known = self._known()
        return max(known.values()) if known else None

    @property
    def at_most(self) -> float | None:
        """The sum of all times: nothing overlaps, and every resource runs at its peak."""
        known = self._known()
        return sum(known.values()) if known else None

    @property
    def bound_by(self) -> str | None:
        """The busiest resource."""
        known = self._known()
        return max(known, key=lambda name: known[name]) if known else None

    @property
    def utilisation(self) -> float | None:
        """The share of the peak operations per second that a step of `at_least` seconds would reach (MFU)."""
        least = self.at_least
        return self.compute / least if least and self.compute is not None and self.memory is not None else None

    def _known(self) -> dict[str, float]:
        times = {"compute": self.compute, "memory": self.memory, "links": self.links, "network": self.network}
        return {name: seconds for name, seconds in times.items() if seconds is not None}


def roofline(
    flops: Mapping[str, float],
    traffic: int | None,
    collectives: Sequence[Collective] | None,
    figures: DeviceFigures,
    device_count: int,
) -> Roofline:
    """Returns the times of a step.

    Args:
        flops: the operations of the step by dtype, of all devices together. They are assumed to be shared equally.
        traffic: the bytes between one device and its memory, or None if not known.
        collectives: the collectives of the step, or None if not known.
        figures: the figures of one device.
        device_count: the number of devices.

    Example:
        >>> figures = DeviceFigures(
        ...     kind="a",
        ...     memory_bytes=1,
        ...     peak_flops={"float32": 1e12},
        ...     memory_bandwidth=1e11,
        ...     link_bandwidth=1e10,
        ...     source="",
        ... )
        >>> times = roofline({"float32": 8e12}, 10**10, (), figures, 8)
        >>> times.compute, times.memory, times.bound_by, times.utilisation
        (1.0, 0.1, 'compute', 1.0)
    """
    known = all(dtype in figures.peak_flops for dtype in flops)
    compute = sum(count / figures.peak_flops[dtype] for dtype, count in flops.items()) / device_count if known else None
    links = network = None
    if collectives is not None:
        links = sum(each.sent_bytes for each in collectives if not each.crosses_groups) / figures.link_bandwidth
        network = sum(each.sent_bytes for each in collectives if each.crosses_groups)
        network = network / figures.network_bandwidth if network and figures.network_bandwidth else None
    return Roofline(
        compute=compute,
        memory=None if traffic is None else traffic / figures.memory_bandwidth,
        links=links,
        network=network,
    )
