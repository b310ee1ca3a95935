"""The NVIDIA driver, asked without jax: what it says costs nothing and initialises nothing of jax."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Driver:
    """What the driver tells.

    Attributes:
        cuda: the newest CUDA version it can run, (major, minor).
        devices: names of the cards that this process may use.
        error: what `cuInit` said when it failed; empty otherwise.
    """

    cuda: tuple[int, int]
    devices: tuple[str, ...]
    error: str = ""


_NO_DEVICE = 100


def find_driver() -> Driver | None:
    """The driver of this machine, None where there is none."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    cuda = (version.value // 1000, version.value % 1000 // 10)
    status = library.cuInit(0)
    if status not in (0, _NO_DEVICE):
        return Driver(cuda=cuda, devices=(), error=f"cuInit failed with error {status}")
    count = ctypes.c_int(0)
    if status == 0:
        library.cuDeviceGetCount(ctypes.byref(count))
    return Driver(cuda=cuda, devices=tuple(_name(library, index) for index in range(count.value)))


def _name(library: ctypes.CDLL, index: int) -> str:
    device, text = ctypes.c_int(0), ctypes.create_string_buffer(128)
    library.cuDeviceGet(ctypes.byref(device), index)
    library.cuDeviceGetName(text, len(text), device)
    return text.value.decode(errors="replace")
