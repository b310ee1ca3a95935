"""Runs of several processes, started by this machine, Slurm, Kubernetes or Ray.

Each name is imported at its first use. `__init__.pyi` is the typed list of the public names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "contract": ("JobSpec", "JobStatus", "Launcher", "Plan", "PlannedFile"),
    "errors": ("LaunchError",),
    "kubernetes": ("KubernetesLauncher",),
    "launching": ("find_launcher", "follow", "launch"),
    "local": ("LocalLauncher",),
    "ray": ("RayLauncher",),
    "slurm": ("SlurmLauncher",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = list(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
