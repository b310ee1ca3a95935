"""The CPU backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core._backends.base import Available, Unavailable


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
