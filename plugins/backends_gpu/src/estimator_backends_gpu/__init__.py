"""NVIDIA GPU backend for estimator-core: probe, compiler flags, device figures, topologies to compile for.

The import of this package does not import jax, because each name is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_backends_gpu.backend import GPUBackend as GPUBackend
    from estimator_backends_gpu.devices import FIGURES as FIGURES
    from estimator_backends_gpu.flags import DEFAULT_FLAGS as DEFAULT_FLAGS
    from estimator_backends_gpu.flags import CompilerFlag as CompilerFlag
    from estimator_backends_gpu.settings import configure as configure

__version__ = "0.1.0"

_HOME = {
    "CompilerFlag": "flags",
    "DEFAULT_FLAGS": "flags",
    "FIGURES": "devices",
    "GPUBackend": "backend",
    "configure": "settings",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
