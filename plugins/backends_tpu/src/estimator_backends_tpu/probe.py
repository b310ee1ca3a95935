"""Finds out whether jax can use a TPU here, and otherwise what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from estimator_core.backends import Available, Unavailable

INSTALL = "pip install 'estimator-backends-tpu[tpu]'"
_PRIORITY = 200
_GOOGLE = "0x1ae0"
#: The device ids on the PCI bus, with the name of the chip.
_CHIPS = {"0x005e": "TPU v4", "0x0062": "TPU v5p", "0x0063": "TPU v5e", "0x006f": "TPU v6e", "0x0076": "TPU7x"}


def libtpu_installed() -> bool:
    """Returns whether the runtime of the TPU is installed."""
    return find_spec("libtpu") is not None


def chips_on_bus(bus: Path = Path("/sys/bus/pci/devices")) -> tuple[str, ...]:
    """Returns the TPU chips on the PCI bus of this machine."""
    found: list[str] = []
    for device in sorted(bus.glob("*")):
        try:
            vendor, chip = (device / "vendor").read_text().strip(), (device / "device").read_text().strip()
        except OSError:
            continue
        if vendor == _GOOGLE and chip in _CHIPS:
            found.append(_CHIPS[chip])
    return tuple(found)


def probe(
    environment: Mapping[str, str], has_libtpu: Callable[[], bool], chips: Callable[[], tuple[str, ...]]
) -> Available | Unavailable:
    """Checks the settings, the packages and the PCI bus, in this order. It starts nothing of jax.

    Args:
        environment: the environment of the process.
        has_libtpu: the function that returns whether the runtime is installed.
        chips: the function that returns the TPU chips of this machine.
    """
    chosen = environment.get("JAX_PLATFORMS", "")
    if chosen and "tpu" not in chosen.split(","):
        return Unavailable(reason=f"JAX_PLATFORMS={chosen} excludes the TPU; unset it, or add tpu.")
    if not has_libtpu() and "TPU_LIBRARY_PATH" not in environment:
        return Unavailable(reason=f"the TPU runtime (libtpu) is not installed. Install it: {INSTALL}.")
    found = chips()
    if not found:
        return Unavailable(reason="there is no TPU on the PCI bus of this machine.")
    names = sorted(set(found))
    return Available(
        priority=_PRIORITY, summary=", ".join(f"{found.count(name)} x {name} on this machine" for name in names)
    )
