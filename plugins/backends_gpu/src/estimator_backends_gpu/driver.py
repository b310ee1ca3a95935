"""Queries the NVIDIA driver without jax. The query is cheap, and initialises nothing of jax."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Driver:
    """The facts that the driver reports.

    Attributes:
        cuda: the newest CUDA version that it can run, (major, minor).
        devices: the names of the GPUs that this process may use.
        error: the message of a failed `cuInit`, otherwise empty.
    """

    cuda: tuple[int, int]
    devices: tuple[str, ...]
    error: str = ""


_NO_DEVICE = 100


def find_driver() -> Driver | None:
    """Returns the driver of this machine, or None if there is none."""
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
