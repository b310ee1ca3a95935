"""The settings of a run: configuration, flags and seeds, and its hardware."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator_core.summaries import without_secrets

#: Keys that differ on purpose.
_OF_THE_RUN = ("run_config.model_dir",)
_FLAGS = ("XLA_", "JAX_", "LIBTPU_", "NVIDIA_", "CUDA_VISIBLE", "OMP_", "MKL_", "OPENBLAS_", "ESTIMATOR_", "KERAS_")
_SEEDS = ("PYTHONHASHSEED",)
#: The variable with the step at which a repeated run stops.
LAST_STEP = "ESTIMATOR_REPRODUCE_LAST_STEP"
#: Variables that identify a process in its job. They differ in another job.
PLACEMENT = (
    "JAX_COORDINATOR_ADDRESS",
    "JAX_COORDINATOR_BIND_ADDRESS",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
    "ESTIMATOR_RUN_ID",
    "ESTIMATOR_RUN_SECRET",
    "ESTIMATOR_ATTEMPT",
    LAST_STEP,
)
_PREFIX = "environment."
#: Parts of the names of flags that set a location or a log, and change no number.
_HARMLESS = ("CACHE", "LOG", "TRACEBACK", "DUMP", "QUIET")
_OF_JAX = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_numpy_dtype_promotion",
    "jax_disable_jit",
    "jax_platforms",
)


def told(record: Mapping[str, Any], configuration: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns flags and seeds by key, with secrets masked.

    Args:
        record: the run record, whose secrets are already masked.
        configuration: the effective values of a configuration file by key; empty for a program in Python.
    """
    values: dict[str, Any] = {f"{_PREFIX}{name}": value for name, value in environment_flags().items()}
    values |= {f"jax.{name}": value for name, value in _of_jax()}
    for table in ("run_config", "hparams"):
        found = record.get(table)
        values |= {f"{table}.{name}": value for name, value in found.items()} if isinstance(found, Mapping) else {}
    values |= {key: _plain(key, value) for key, value in configuration.items() if key not in values}
    values = {key: value for key, value in values.items() if key not in _OF_THE_RUN}
    seeds = {key: value for key, value in values.items() if _is_seed(key)}
    return {key: value for key, value in values.items() if key not in seeds}, seeds


def environment_flags() -> dict[str, str]:
    """Returns the variables of the environment that may change numbers."""
    return {
        name: without_secrets([f"{name}={value}"])[0].partition("=")[2]
        for name, value in sorted(os.environ.items())
        if name.startswith((*_FLAGS, *_SEEDS)) and name not in PLACEMENT and not any(word in name for word in _HARMLESS)
    }


def environment_again(flags: Mapping[str, Any], present: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment for a repeated run: the current one without the job, with the flags of a record.

    A flag whose value the record masks keeps its current value.

    Args:
        flags: the flags and seeds of the record.
        present: the variables of this process.
    """
    recorded = {key.removeprefix(_PREFIX): str(flags[key]) for key in flags if key.startswith(_PREFIX)}
    masked = {name for name, value in recorded.items() if "***" in value}
    kept = {name: present[name] for name in present if name in masked or name not in environment_flags()}
    told = {name: recorded[name] for name in recorded if name not in masked}
    return {name: value for name, value in {**kept, **told}.items() if name not in PLACEMENT}


def hardware() -> dict[str, Any]:
    """Returns the devices of this process and facts about its machine."""
    import jax

    return {
        "devices": [f"{one.platform}: {one.device_kind}" for one in jax.devices()],
        "processes": jax.process_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _of_jax() -> Iterator[tuple[str, Any]]:
    import jax

    for name in _OF_JAX:
        yield name, getattr(jax.config, name, None)


def _is_seed(key: str) -> bool:
    """Returns whether a key names a seed.

    Example:
        >>> [_is_seed(key) for key in ("run_config.tf_random_seed", "inputs.train.args.seed", "hparams.speed")]
        [True, True, False]
    """
    last = key.rpartition(".")[2]
    return last == "seed" or last.endswith("_seed") or last in _SEEDS


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets([f"{key}={value}"])[0].partition("=")[2]
    if isinstance(value, Mapping):
        return {str(name): _plain(f"{key}.{name}", item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(key, item) for item in value]
    return json.loads(json.dumps(value, default=repr))
