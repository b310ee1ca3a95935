"""The contract of a device backend, and the CPU, which every machine has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

#: Mesh axes over which batches are split; parameters may be split over them too.
BATCH_AXES = ("data", "fsdp")
#: The mesh axis along which stages of layers lie.
STAGES = "stage"


@dataclass(frozen=True, kw_only=True)
class Available:
    """A backend can be used here.

    Args:
        priority: "auto" takes the backend with the highest.
        summary: what was found, for the log.
    """

    priority: int
    summary: str


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """A backend cannot be used here, and why."""

    reason: str


@runtime_checkable
class Backend(Protocol):
    """What the core asks of a device backend. Import-light: jax is imported by the methods that need it."""

    @property
    def name(self) -> str:
        """The name users give in `RunConfig(backend=...)`."""
        ...

    def probe(self) -> Available | Unavailable:
        """Whether it can be used on this machine; never raises."""
        ...

    def initialize(self) -> None:
        """Sets compiler flags and connects processes; called once, before the first array."""
        ...

    def devices(self) -> Sequence[Any]:
        """The jax devices to run on, all processes together."""
        ...

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """Peak floating point operations a second of one device of a `device_kind`, in numbers of a `dtype` such as
        "bfloat16"; None where unknown.
        """
        ...

    def memory_bytes(self, device_kind: str) -> int | None:
        """Memory in bytes of one device of a `device_kind`, None where unknown."""
        ...


class CPUBackend:
    """Runs on the CPU devices of jax. It is always available.

    Example:
        >>> CPUBackend().probe().priority
        0
    """

    name = "cpu"

    def probe(self) -> Available | Unavailable:
        """Always available, at the lowest priority."""
        return Available(priority=0, summary="CPU")

    def initialize(self) -> None:
        """Does nothing."""

    def devices(self) -> Sequence[Any]:
        """Jax's CPU devices; several with `XLA_FLAGS=--xla_force_host_platform_device_count=N`."""
        import jax

        return jax.devices("cpu")

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """The peak is not known."""
        return None

    def memory_bytes(self, device_kind: str) -> int | None:
        """The memory is not known."""
        return None
