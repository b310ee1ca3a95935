"""The peak FLOP/s of the devices, from the installed backends."""

from __future__ import annotations

from typing import Any


def peak_flops_of_devices(dtype: str = "float32") -> float | None:
    """Returns the floating point operations per second of all devices together. None if no backend knows the value."""
    import jax

    from estimator_core.plugins import default_plugins

    plugins = default_plugins()
    devices = jax.devices()
    for name in plugins.automatic("backend"):
        backend: Any = plugins.get("backend", name)()
        peaks = [backend.peak_flops(device.device_kind, dtype) for device in devices]
        if all(peaks):
            return float(sum(peaks))
    return None
