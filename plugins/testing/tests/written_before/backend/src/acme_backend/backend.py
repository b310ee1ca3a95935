"""A backend that runs on some of the processors of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from estimator_core.backends.base import Available, Unavailable
from estimator_core.backends.topology import DeviceFigures

_VARIABLE = "ACME_BACKEND_DEVICES"


FIGURES = DeviceFigures(
    kind="cpu",
    memory_bytes=1 << 30,
    peak_flops={"float32": 1e11},
    memory_bandwidth=1e10,
    link_bandwidth=1e9,
    source="a guess",
)


class AcmeBackendBackend:
    """The first devices of the CPU, as many as `ACME_BACKEND_DEVICES` says (default 1)."""

    name = "acme_backend"

    def probe(self) -> Available | Unavailable:
        """Below every other backend: it is used when it is asked for by name."""
        wanted = os.environ.get(_VARIABLE, "1")
        if not wanted.isdigit() or int(wanted) < 1:
            return Unavailable(reason=f"{_VARIABLE}={wanted!r}; set it to a number of devices from 1.")
        return Available(priority=-1, summary=f"{wanted} CPU device(s)")

    def initialize(self) -> None:
        """Compiler flags would be set here, before the first device is used."""

    def devices(self) -> Sequence[Any]:
        """The jax devices to run on."""
        import jax

        return jax.devices("cpu")[: int(os.environ.get(_VARIABLE, "1"))]

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """Unknown."""
        return None

    def memory_bytes(self, device_kind: str) -> int | None:
        """A guess."""
        return FIGURES.memory_bytes if device_kind == FIGURES.kind else None
