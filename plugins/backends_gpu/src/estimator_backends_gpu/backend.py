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
#: jax asks CUPTI for its version before it registers its plugin, and CUPTI 13.5 does not answer without a driver.
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
    #: What cuBLAS takes beside the temporaries of a program: estimator-plan adds it to those on processors, which bound
    #: the temporaries on cards from above.
    workspace_bytes = 32 * 2**20

    def probe(self) -> Available | Unavailable:
        """Whether there is a GPU that jax can use; looks at settings, packages and the driver, and starts no device."""
        return probe(os.environ, find_driver)

    def initialize(self) -> None:
        """Sets the compiler flags and the share of memory; flags and shares of the environment stay."""
        if SETTINGS.used:
            return
        SETTINGS.used = True
        if _jax_has_started():
            _log.warning(
                "jax was used before the gpu backend: its compiler flags and share of memory stay as they were. Make "
                "the Estimator first, or set XLA_FLAGS and %s.",
                _FRACTION,
            )
            return
        os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *_words()]).strip()
        os.environ.setdefault(_FRACTION, str(SETTINGS.memory_fraction))
        _log.debug("gpu backend: XLA_FLAGS=%s %s=%s", os.environ["XLA_FLAGS"], _FRACTION, os.environ[_FRACTION])

    def compiler_options(self) -> Mapping[str, str | bool]:
        """The flags that a run would set, as options: a plan compiles with them, as they change what a step holds."""
        return compiler_options(_words(), known_to_jaxlib(OPTIONS.values()).__contains__)

    def devices(self) -> Sequence[Any]:
        """Jax's GPUs, all processes together."""
        import jax

        return jax.devices("gpu")

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        """From the data sheet, without sparsity; float32 products run as TensorFloat-32."""
        figures = FIGURES.get(device_kind)
        return None if figures is None else figures.peak_flops.get(dtype)

    def memory_bytes(self, device_kind: str) -> int | None:
        """Memory of the card."""
        figures = FIGURES.get(device_kind)
        return None if figures is None else figures.memory_bytes

    def topology_families(self) -> Sequence[str]:
        """Cards whose description the compiler has been given."""
        return tuple(TARGETS)

    def topology(self, family: str, shape: tuple[int, ...]) -> Topology:
        """`h100x8`: eight cards of one machine; `h100:2x8`: two machines of eight.

        Raises:
            ArgumentError: the shape is neither cards nor machines by cards, or a machine has more than 8.
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
        """Cards to compile for; jax's CUDA plugin must be installed, a driver need not.

        Raises:
            BackendUnavailableError: it is not, or it refuses.
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
    """The flags for `XLA_FLAGS`, beside those that it has."""
    known = known_to_jaxlib([*(flag.name for flag in DEFAULT_FLAGS), *SETTINGS.flags])
    return flag_words(SETTINGS.flags, os.environ.get("XLA_FLAGS", ""), known.__contains__)


def _jax_has_started() -> bool:
    from jax._src import xla_bridge  # the only place that tells without starting it

    return bool(xla_bridge.backends_are_initialized())
