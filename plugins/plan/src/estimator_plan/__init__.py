"""The needs of a training step on absent devices: memory, operations, collectives, time.

The import of this package imports neither jax nor the planner, because every public name is imported when it is first
used. `__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "collectives": ("Collective",),
    "contracts": ("BoundedByProcessors", "CompilesWithFlags"),
    "flops": ("FlopCount", "count_flops"),
    "kept_program": ("KeptProgram", "keep_program", "kept_programs"),
    "memory": ("Memory",),
    "pipeline": ("pipelined",),
    "preset": ("Preset", "load_preset", "presets", "save_preset"),
    "roofline": ("Roofline",),
    "search": ("Candidate", "search_plans", "search_report"),
    "tables": ("report",),
    "topologies": ("Found", "Wanted", "find_topology", "parse_mesh", "parse_topology"),
    "training_plan": ("TrainingPlan", "plan_training"),
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
