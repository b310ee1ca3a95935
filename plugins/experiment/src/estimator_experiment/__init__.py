"""Experiment, learn_runner, HParams and the command `estimator run`, for estimator-core.

Each public name is imported when it is first used. `__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "experiment": ("Experiment",),
    "hparams": ("HParams",),
    "opening": ("OpenedProgram", "add_program_arguments", "open_program"),
    "program": ("Program", "ProgramFormat", "load_module", "load_program"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_SUBMODULES = ("learn_runner",)
__all__ = [*_MODULE_OF, *_SUBMODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF, *_SUBMODULES])
