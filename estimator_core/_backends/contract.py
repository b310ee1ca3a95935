"""The contract of a device backend, and the CPU backend, which works on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

#: The mesh axes over which batches are split. Parameters may be split over them too.
BATCH_AXES = ("data", "fsdp")
#: The mesh axis of the stages of layers.
STAGES = "stage"


@dataclass(frozen=True, kw_only=True)
class Available:
    """A backend can be used here.

    Args:
        priority: "auto" chooses the backend with the highest priority.
        summary: a description of the devices, for the log.
    """

    priority: int
    summary: str


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """A backend cannot be used here, for a reason in words."""

    reason: str


@runtime_checkable
class Backend(Protocol):
    """A device backend, as the core uses it. Its module must not import jax. Methods that need jax import it."""

    @property
    def name(self) -> str:
        """The name that users pass to `RunConfig(backend=...)`."""
        ...

    def probe(self) -> Available | Unavailable:
        """Returns `Available` if this machine can use the backend, else `Unavailable`. It never raises an error."""
        ...

    def initialize(self) -> None:
        """Sets compiler flags and connects processes. Called once, before the first array is created."""
        ...

    def devices(self) -> Sequence[Any]:
        """Returns the jax devices to run on, over all processes."""
        ...

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """Peak floating point operations per second of one device of a `device_kind`, for a `dtype` such as "bfloat16";
        None if unknown.
        """
        ...

    def memory_bytes(self, device_kind: str) -> int | None:
        """Memory in bytes of one device of a `device_kind`; None if unknown."""
        ...


class CPUBackend:
    """Runs on the CPU devices of jax. It is always available.

    Example:
        >>> CPUBackend().probe().priority
        0
    """

    name = "cpu"

    def probe(self) -> Available | Unavailable:
        """Returns `Available` with the lowest priority."""
        return Available(priority=0, summary="CPU")

    def initialize(self) -> None:
        """Does nothing."""

    def devices(self) -> Sequence[Any]:
        """Returns the CPU devices of jax. `XLA_FLAGS=--xla_force_host_platform_device_count=N` creates several."""
        import jax

        return jax.devices("cpu")

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """Returns None, because the peak is unknown."""
        return None

    def memory_bytes(self, device_kind: str) -> int | None:
        """Returns None, because the memory is unknown."""
        return None
