"""Finds out whether jax can use an NVIDIA GPU here, and otherwise what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version

from estimator_backends_gpu.driver import Driver
from estimator_core.backends import Available, Unavailable

INSTALL = "pip install 'estimator-backends-gpu[cuda]'"
_PRIORITY = 100
#: The CUDA plugins of jax, newest first, and the CUDA version that each requires of the driver.
_PLUGINS = (("jax-cuda13-plugin", (13, 0)), ("jax-cuda12-plugin", (12, 0)))
_GPU_PLATFORMS = {"cuda", "gpu"}


def installed_version(distribution: str) -> str | None:
    """Returns the version of an installed distribution, or None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def probe(
    environment: Mapping[str, str],
    find_driver: Callable[[], Driver | None],
    version_of: Callable[[str], str | None] = installed_version,
) -> Available | Unavailable:
    """Checks the settings, the packages and the driver, in this order. It starts nothing of jax.

    Args:
        environment: the environment of the process.
        find_driver: the function that queries the NVIDIA driver.
        version_of: the function that returns the version of an installed distribution, or None.
    """
    chosen = environment.get("JAX_PLATFORMS", "")
    if chosen and not _GPU_PLATFORMS & set(chosen.split(",")):
        return Unavailable(reason=f"JAX_PLATFORMS={chosen} excludes the GPU; unset it, or add cuda.")
    found = next(((name, needed) for name, needed in _PLUGINS if version_of(name) is not None), None)
    if found is None:
        return Unavailable(reason=f"jax has no CUDA plugin here. Install it: {INSTALL}.")
    plugin, needed = found
    differs = _other_version(plugin, version_of)
    if differs is not None:
        return Unavailable(reason=differs)
    driver = find_driver()
    if driver is None:
        return Unavailable(reason="there is no NVIDIA driver here (libcuda.so.1 cannot be loaded).")
    if driver.error:
        return Unavailable(reason=f"the NVIDIA driver does not work: {driver.error}. nvidia-smi may say more.")
    if driver.cuda < needed:
        return Unavailable(
            reason=(
                f"the NVIDIA driver is too old: it runs CUDA {_dotted(driver.cuda)}, but {plugin} needs "
                f"{_dotted(needed)}. Update the driver, or install the plugin for the older CUDA: pip install "
                "'jax[cuda12]'."
            )
        )
    if not driver.devices:
        hidden = environment.get("CUDA_VISIBLE_DEVICES")
        why = "" if hidden is None else f" CUDA_VISIBLE_DEVICES={hidden!r} may hide it."
        return Unavailable(reason=f"the NVIDIA driver has no device for this process.{why}")
    return Available(priority=_PRIORITY, summary=_listed(driver.devices))


def _other_version(plugin: str, version_of: Callable[[str], str | None]) -> str | None:
    """Returns the fault if the versions differ, because jax then ignores the plugin with only a warning."""
    mine, jaxlib = version_of(plugin), version_of("jaxlib")
    if mine is None or jaxlib is None or mine.split(".")[:3] == jaxlib.split(".")[:3]:
        return None
    return f"{plugin} {mine} does not match jaxlib {jaxlib}. Install the same version of both: {INSTALL}."


def _listed(devices: tuple[str, ...]) -> str:
    names = sorted(set(devices))
    return ", ".join(f"{devices.count(name)} x {name}" for name in names)


def _dotted(cuda: tuple[int, int]) -> str:
    return f"{cuda[0]}.{cuda[1]}"
