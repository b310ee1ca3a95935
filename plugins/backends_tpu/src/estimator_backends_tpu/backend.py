"""The TPU backend."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from estimator_backends_tpu import topologies
from estimator_backends_tpu.devices import FIGURES
from estimator_backends_tpu.probe import chips_on_bus, libtpu_installed, probe
from estimator_core.backends import Available, Topology, Unavailable
from estimator_core.errors import BackendUnavailableError

_log = logging.getLogger("estimator_core")
#: The error of jax if neither the environment nor the machine's metadata names a pod. This machine is then alone.
_NOTHING_TOLD = "coordinator_address should be defined."


class TPUBackend:
    """Runs on the TPUs of this machine, or of the pod it belongs to.

    Example:
        >>> backend = TPUBackend()
        >>> backend.peak_flops("TPU v5 lite", "bfloat16")
        197000000000000.0
        >>> backend.topology("v5p", (4, 4, 4)).device_count
        64
    """

    name = "tpu"

    def probe(self) -> Available | Unavailable:
        """Returns whether jax can use a TPU here. Reads settings, packages and the bus, and starts no device."""
        return probe(os.environ, libtpu_installed, chips_on_bus)

    def initialize(self) -> None:
        """Connects the processes of a pod, one per machine, unless the program has done so. jax finds them.

        Raises:
            BackendUnavailableError: the other processes of the pod cannot be reached, or their description is wrong.
        """
        import jax

        if jax.distributed.is_initialized() or _jax_has_started():
            return
        try:
            jax.distributed.initialize()
        except (ValueError, RuntimeError) as error:
            if str(error) == _NOTHING_TOLD:
                return
            raise BackendUnavailableError(
                f"The machines of this TPU pod cannot be connected: {error}. Start the program on all of them at the "
                "same time. If jax cannot find them, name them in RunConfig(processes=ec.Processes(...))."
            ) from error
        _log.info("TPU pod: process %d of %d", jax.process_index(), jax.process_count())

    def devices(self) -> Sequence[Any]:
        """Returns the TPUs of jax, of all processes together."""
        import jax

        return jax.devices("tpu")

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """Returns the value in Google's documentation. At jax's default precision, float32 uses one bfloat16 pass."""
        figures = FIGURES.get(device_kind)
        return None if figures is None else figures.peak_flops.get(dtype)

    def memory_bytes(self, device_kind: str) -> int | None:
        """Returns the bytes of HBM that the compiler lets programs use."""
        figures = FIGURES.get(device_kind)
        return None if figures is None else figures.memory_bytes

    def topology_families(self) -> Sequence[str]:
        """Returns the generations for whose slices libtpu compiles without a TPU."""
        return tuple(topologies.FAMILIES)

    def topology(self, family: str, shape: tuple[int, ...]) -> Topology:
        """Returns the topology of `v5e:4x4`, `v5p:4x4x4` or `v6e:2x4`.

        Raises:
            ArgumentError: the slice does not exist.
        """
        return topologies.topology(family, shape)

    def topology_devices(self, topology: Topology) -> Sequence[Any]:
        """Returns devices to compile for. libtpu must be installed.

        Raises:
            BackendUnavailableError: libtpu is not installed, or it refuses the topology.
        """
        return topologies.topology_devices(topology)


def _jax_has_started() -> bool:
    from jax._src import xla_bridge  # the only place that shows this without starting jax

    return bool(xla_bridge.backends_are_initialized())
