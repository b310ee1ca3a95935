"""The settings that a program may change before the backend is first used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from estimator_core.errors import ArgumentError

#: The share of GPU memory that jax takes. The rest is left to CUDA libraries. The default of jax is 0.75.
MEMORY_FRACTION = 0.9


@dataclass
class Settings:
    """The arguments of `configure`, and whether the backend has used them."""

    memory_fraction: float = MEMORY_FRACTION
    flags: dict[str, Any] = field(default_factory=dict[str, Any])
    used: bool = False


SETTINGS = Settings()


def configure(*, memory_fraction: float | None = None, flags: Mapping[str, Any] | None = None) -> None:
    """Changes the settings of the backend. Call it before the first Estimator works.

    The environment has priority: `XLA_PYTHON_CLIENT_MEM_FRACTION`, and the flags in `XLA_FLAGS`.

    Args:
        memory_fraction: the share of GPU memory that jax takes, above 0 and at most 1.
        flags: the values by name of XLA flag. None removes a flag of `DEFAULT_FLAGS`. Other flags are added.

    Raises:
        ArgumentError: a value cannot be used, or the backend has been used already.

    Example:
        >>> import estimator_backends_gpu
        >>> estimator_backends_gpu.configure(memory_fraction=0.8, flags={"xla_gpu_enable_pipelined_all_reduce": None})
        >>> estimator_backends_gpu.configure(memory_fraction=0.9, flags={})
    """
    if SETTINGS.used:
        raise ArgumentError(
            "estimator_backends_gpu.configure was called too late: the compiler has already started with other flags. "
            "Call it before the first Estimator trains, evaluates or predicts."
        )
    if memory_fraction is not None:
        if not 0 < memory_fraction <= 1:
            raise ArgumentError(f"memory_fraction should lie in (0, 1], given: {memory_fraction!r}.")
        SETTINGS.memory_fraction = memory_fraction
    if flags is not None:
        SETTINGS.flags = {name.removeprefix("--"): value for name, value in flags.items()}
