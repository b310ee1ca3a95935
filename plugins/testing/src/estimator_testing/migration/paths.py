"""The new place of each old path of the core, and the public names."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import estimator_core
from estimator_testing._core import MOVED

CORE = "estimator_core"

#: Modules of the core that offer the names of a package.
_FACES_OF_PACKAGES = ("estimator_core.learn_runner", "estimator_core.testing")
#: The module of the package that now holds the names of an old module, and of everything below it.
_LEFT: dict[str, str] = {
    "estimator_core.experiment": "estimator_experiment",
    "estimator_core.hparams": "estimator_experiment",
    "estimator_core.inputs.frames": "estimator_inputs",
    "estimator_core.export.example_proto": "estimator_inputs",
    "estimator_core.export.examples": "estimator_inputs",
    "estimator_core.export.feature_specs": "estimator_inputs",
    "estimator_core.model.adapters.equinox": "estimator_modules.equinox_adapter",
    "estimator_core.model.adapters.keras": "estimator_modules.keras_adapter",
    "estimator_core.model.adapters.linen": "estimator_modules.linen_adapter",
    "estimator_core.model.adapters.nnx": "estimator_modules.nnx_adapter",
    "estimator_core.model.checkpoint_values": "estimator_warm_start",
    "estimator_core.model.init_from_checkpoint": "estimator_warm_start",
    "estimator_core.model.load_report": "estimator_warm_start",
    "estimator_core.model.vocabulary": "estimator_warm_start",
    "estimator_core.model.warm_start": "estimator_warm_start",
    "estimator_core.plan": "estimator_plan",
    "estimator_core.testing": "estimator_testing",
}
#: The module of the package that now holds a name of a module of the core.
_NAMES_LEFT: dict[str, str] = {
    "FixedLenFeature": "estimator_inputs",
    "FixedLenSequenceFeature": "estimator_inputs",
    "VarLenFeature": "estimator_inputs",
    "VocabInfo": "estimator_warm_start",
    "WarmStartSettings": "estimator_warm_start",
    "build_parsing_serving_input_receiver_fn": "estimator_inputs",
    "example_class": "estimator_inputs",
    "get_assignment_map_from_checkpoint": "estimator_warm_start",
    "init_from_checkpoint": "estimator_warm_start",
    "pandas_input_fn": "estimator_inputs",
}
#: The module of the core that now holds a name of an old module whose other names left the core.
_STAYED: dict[str, str] = {
    "TracedStep": "estimator_core.lowering",
    "trace_step": "estimator_core.lowering",
}


@cache
def public_modules() -> frozenset[str]:
    """Returns the modules that are still in the core, and whose path has no part that begins with an underscore."""
    names = [f"{CORE}.{one.name}" for one in pkgutil.iter_modules(estimator_core.__path__) if one.name[0] != "_"]
    return frozenset({CORE, *(name for name in names if name not in _LEFT or name in _FACES_OF_PACKAGES)})


@cache
def public_names(module: str) -> frozenset[str]:
    """Returns the names that a public module of the core offers, including those from packages."""
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None) or [name for name in dir(loaded) if not name.startswith("_")]
    faces = (f"{CORE}.{name}".rpartition(".") for name in MOVED)
    return frozenset({*names, *(own for face, _, own in faces if face == module)})


def has_name(module: str, name: str) -> bool:
    """Returns whether a module of a package has a name. True if the package, or one that it needs, is missing."""
    try:
        return name in dir(importlib.import_module(module))
    except ImportError as error:
        return error.name != module or module.partition(".")[0] == module


def is_core(module: str) -> bool:
    """Returns whether a path belongs to the core."""
    return module == CORE or module.startswith(f"{CORE}.")


def is_private(module: str) -> bool:
    """Returns whether a path of the core has a part that begins with an underscore."""
    return is_core(module) and any(part.startswith("_") for part in module.split("."))


def is_public_import(module: str, name: str) -> bool:
    """Returns whether `from module import name` imports a public name of the core."""
    if module == CORE and f"{CORE}.{name}" in public_modules():
        return True
    return module in public_modules() and (name in public_names(module) or module in _FACES_OF_PACKAGES)


def new_module_of(module: str, name: str) -> str | None:
    """Returns the public module that holds the name of `from module import name`, or None.

    Example:
        >>> new_module_of("estimator_core.export.outputs", "PredictOutput")
        'estimator_core.export'
        >>> new_module_of("estimator_core.plan", "TrainingPlan")
        'estimator_plan'
    """
    left = [old for old in _LEFT if module == old or module.startswith(f"{old}.")]
    if left:
        old = max(left, key=len)
        homes = (_LEFT[old], _LEFT[old] + module.removeprefix(old))
        return next((home for home in homes if has_name(home, name)), _STAYED.get(name))
    own = public_of(module)
    faces = [face for face in sorted(public_modules()) if face not in (CORE, own, *_FACES_OF_PACKAGES)]
    for face in [*([own] if own else []), *faces, CORE]:
        if name in public_names(face):
            return face
    return _NAMES_LEFT.get(name)


def public_of(module: str) -> str | None:
    """Returns the public module above a path, or None. The path is below it, or in a private room with one."""
    parts = [part.removeprefix("_") for part in module.split(".")]
    if parts[1:3] == ["loop", "builtin_hooks"]:
        return f"{CORE}.builtin_hooks"
    face = ".".join(parts[:2])
    return face if face in public_modules() else None


def packages() -> frozenset[str]:
    """Returns the packages to which modules or names of the core have moved."""
    return frozenset(home.partition(".")[0] for home in (*_LEFT.values(), *_NAMES_LEFT.values()))


def whole_module(module: str) -> str | None:
    """Returns the module to import instead of a whole old module. None if its names moved to several places."""
    if module in _LEFT:
        return _LEFT[module]
    return public_of(module) if module == f"{CORE}.loop.builtin_hooks" else None
