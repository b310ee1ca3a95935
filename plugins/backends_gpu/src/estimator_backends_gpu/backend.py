"""The GPU backend."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from estimator_backends_gpu.devices import FIGURES
from estimator_backends_gpu.driver import find_driver
from estimator_backends_gpu.flags import DEFAULT_FLAGS, OPTIONS, compiler_options, flag_words, known_to_jaxlib
from estimator_backends_gpu.probe import INSTALL, installed_version, probe
from estimator_backends_gpu.settings import SETTINGS
from estimator_backends_gpu.targets import TARGETS
from estimator_core.backends import Available, DeviceFigures, Topology, Unavailable
from estimator_core.errors import ArgumentError, BackendUnavailableError

_log = logging.getLogger("estimator_core")
_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
#: jax requests the version of CUPTI before it registers its plugin, and CUPTI 13.5 does not answer without a driver.
_SKIP_CHECK = "JAX_SKIP_CUDA_CONSTRAINTS_CHECK"
_NODE = 8


class GPUBackend:
    """Runs on NVIDIA GPUs through jax's CUDA plugin.

    Example:
        >>> backend = GPUBackend()
        >>> backend.peak_flops("NVIDIA H100 80GB HBM3", "bfloat16")
        989400000000000.0
        >>> backend.topology("h100", (8,)).device_count
        8
    """

    name = "gpu"
    #: The bytes that cuBLAS takes in addition to the temporaries of a program. estimator-plan adds it to the
    #: temporaries on CPUs, which are an upper bound of those on GPUs.
    workspace_bytes = 32 * 2**20

    def probe(self) -> Available | Unavailable:
        """Returns whether jax can use a GPU here. Reads settings, packages and the driver, and starts no device."""
        return probe(os.environ, find_driver)

    def initialize(self) -> None:
        """Sets the compiler flags and the share of memory. Values in the environment stay."""
        if SETTINGS.used:
            return
        SETTINGS.used = True
        if _jax_has_started():
            _log.warning(
                "jax was used before the gpu backend: its compiler flags and share of memory keep their values. Create "
                "the Estimator first, or set XLA_FLAGS and %s.",
                _FRACTION,
            )
            return
        os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *_words()]).strip()
        os.environ.setdefault(_FRACTION, str(SETTINGS.memory_fraction))
        _log.debug("gpu backend: XLA_FLAGS=%s %s=%s", os.environ["XLA_FLAGS"], _FRACTION, os.environ[_FRACTION])

    def compiler_options(self) -> Mapping[str, str | bool]:
        """Returns the flags of a run as options. A plan compiles with them, because they change what a step holds."""
        return compiler_options(_words(), known_to_jaxlib(OPTIONS.values()).__contains__)

    def devices(self) -> Sequence[Any]:
        """Returns the GPUs of jax, of all processes together."""
        import jax

        return jax.devices("gpu")

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """Returns the value of the data sheet, without sparsity. float32 products run as TensorFloat-32."""
        figures = FIGURES.get(device_kind)
        return None if figures is None else figures.peak_flops.get(dtype)

    def memory_bytes(self, device_kind: str) -> int | None:
        """Returns the memory of the GPU in bytes."""
        figures = FIGURES.get(device_kind)
        return None if figures is None else figures.memory_bytes

    def topology_families(self) -> Sequence[str]:
        """Returns the GPUs that the compiler has a description of."""
        return tuple(TARGETS)

    def topology(self, family: str, shape: tuple[int, ...]) -> Topology:
        """Returns the topology: `h100x8` means eight GPUs of one machine, `h100:2x8` two machines with eight each.

        Raises:
            ArgumentError: the shape is neither a number of GPUs nor machines by GPUs, or a machine has more than 8.
        """
        name = f"{family}:{'x'.join(map(str, shape))}"
        if len(shape) > 2 or not shape or shape[-1] > _NODE:
            raise ArgumentError(
                f"There is no topology {name!r}: write {family}x8 for eight cards of one machine, {family}:2x8 for two "
                "such machines; a machine has at most 8."
            )
        hosts, cards = shape if len(shape) == 2 else (1, shape[0])
        full = FIGURES[TARGETS[family].kind]
        share = float(os.environ.get(_FRACTION, SETTINGS.memory_fraction))
        figures: DeviceFigures = dataclasses.replace(full, memory_bytes=int(full.memory_bytes * share))
        return Topology(name=name, device_count=hosts * cards, host_count=hosts, figures=figures)

    def topology_devices(self, topology: Topology) -> Sequence[Any]:
        """Returns devices to compile for. The CUDA plugin of jax must be installed, but no driver.

        Raises:
            BackendUnavailableError: the plugin is not installed, or it refuses the topology.
        """
        if installed_version("jax-cuda13-plugin") is None and installed_version("jax-cuda12-plugin") is None:
            raise BackendUnavailableError(f"compiling for {topology.name} needs jax's CUDA plugin (no GPU): {INSTALL}.")
        from jax.experimental import topologies

        if find_driver() is None:
            os.environ.setdefault(_SKIP_CHECK, "1")
        target = next(target for target in TARGETS.values() if target.kind == topology.figures.kind)
        shape = f"1x{topology.host_count}x{topology.device_count // topology.host_count}"
        try:
            found = topologies.get_topology_desc(platform="cuda", target_config=target.text(), topology=shape)
        except Exception as error:
            raise BackendUnavailableError(f"jax's CUDA plugin refuses {topology.name}: {error}") from error
        return list(found.devices)


def _words() -> list[str]:
    """Returns the flags to add to those in `XLA_FLAGS`."""
    known = known_to_jaxlib([*(flag.name for flag in DEFAULT_FLAGS), *SETTINGS.flags])
    return flag_words(SETTINGS.flags, os.environ.get("XLA_FLAGS", ""), known.__contains__)


def _jax_has_started() -> bool:
    from jax._src import xla_bridge  # the only place that shows this without starting jax

    return bool(xla_bridge.backends_are_initialized())
