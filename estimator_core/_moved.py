"""The public names and commands of other packages: the module of each, and the package to install if it is missing.

This is the only module of the core that names a package of this repository.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

_EXPERIMENT = ("estimator_experiment", "estimator-experiment")
_HEADS = ("estimator_heads", "estimator-heads")
_INPUTS = ("estimator_inputs", "estimator-inputs")
SIGNATURES = ("estimator_signatures", "estimator-signatures")  # make, write and check exports
_WARM_START = ("estimator_warm_start", "estimator-warm-start")

#: Public name -> (module that defines it, distribution that provides the module). The names in a public module of the
#: core begin with the name of that module.
MOVED: dict[str, tuple[str, str]] = {
    "Experiment": _EXPERIMENT,
    "HParams": _EXPERIMENT,
    "VocabInfo": _WARM_START,
    "WarmStartSettings": _WARM_START,
    "add_metrics": _HEADS,
    "get_assignment_map_from_checkpoint": _WARM_START,
    "init_from_checkpoint": _WARM_START,
    "export.FixedLenFeature": _INPUTS,
    "export.FixedLenSequenceFeature": _INPUTS,
    "export.RawSignature": SIGNATURES,
    "export.SupervisedInputReceiver": SIGNATURES,
    "export.VarLenFeature": _INPUTS,
    "export.build_parsing_serving_input_receiver_fn": _INPUTS,
    "export.build_supervised_input_receiver_fn_from_input_fn": SIGNATURES,
    "export.example_class": _INPUTS,
    "export.load": SIGNATURES,
    "inputs.pandas_input_fn": _INPUTS,
}

#: Public module of the core without its own names -> (module that defines its names, distribution that provides it).
MOVED_MODULES: dict[str, tuple[str, str]] = {
    "learn_runner": ("estimator_experiment.learn_runner", "estimator-experiment"),
    "testing": ("estimator_testing", "estimator-testing"),
}

#: The reader of the policy file of a project: module, distribution.
POLICY_READER = ("estimator_policy", "estimator-policy")

#: Calls, batches and decisions of several processes: module, distribution.
SEVERAL = ("estimator_cluster.several", "estimator-cluster")

#: The reader of checkpoints that several processes wrote in an older format: module, distribution.
OLDER_CHECKPOINTS = ("estimator_cluster.older_checkpoints", "estimator-cluster")

#: The functions that work with URLs: module, distribution.
AT_URLS = ("estimator_storage.at_urls", "estimator-storage")


def load_moved(name: str) -> Any:
    """Returns the object for a name in `MOVED`.

    Raises:
        ModuleNotFoundError: the package is not installed. The message names it.
    """
    module, distribution = MOVED[name]
    return getattr(import_moved(module, distribution, f"estimator_core.{name}"), name.rpartition(".")[2])


def names_of(face: str) -> Callable[[str], object]:
    """Returns the `__getattr__` of a public module of the core with names that are defined in other packages."""

    def __getattr__(name: str) -> object:  # noqa: N807 - what a module calls it
        if f"{face}.{name}" not in MOVED:
            where = home_of(f"{face}.{name}")
            raise AttributeError(f"module 'estimator_core.{face}' has no attribute {name!r}{where}")
        return load_moved(f"{face}.{name}")

    return __getattr__


def moved_module(face: str) -> Callable[[str], object]:
    """Returns the `__getattr__` of a public module of `MOVED_MODULES`."""
    module, distribution = MOVED_MODULES[face]

    def __getattr__(name: str) -> object:  # noqa: N807 - what a module calls it
        if name.startswith("__"):  # names that the import system looks up
            raise AttributeError(f"module 'estimator_core.{face}' has no attribute {name!r}")
        return getattr(import_moved(module, distribution, f"estimator_core.{face}.{name}"), name)

    return __getattr__


def import_moved(module: str, distribution: str, asked_for: str) -> Any:
    """Imports a module that a package provides.

    Raises:
        ModuleNotFoundError: the package is not installed. It is not an AttributeError, because `from estimator_core
            import NAME` would replace that by "cannot import name", without the name of the package.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is installed, but a module that it imports is not
        raise ModuleNotFoundError(
            f"{asked_for} comes with {distribution}: pip install {distribution}", name=package
        ) from error


def moved_names() -> list[str]:
    """Returns the moved names of `estimator_core` itself whose package is installed, as `dir(estimator_core)` lists
    them.
    """
    installed = {module: importlib.util.find_spec(module.partition(".")[0]) for module, _ in MOVED.values()}
    return [name for name, (module, _) in MOVED.items() if "." not in name and installed[module]]


def attributes_of(owner: str) -> Callable[[object, str], object]:
    """Returns the `__getattr__` of a class of the core. Its error explains names that the class of tf.estimator had."""

    def __getattr__(self: object, name: str) -> object:  # noqa: N807 - what a class calls it
        where = home_of(f"{owner}.{name}")
        message = f"{type(self).__name__!r} object has no attribute {name!r}{where}"
        raise AttributeError(message, name=name, obj=self)

    return __getattr__


def home_of(name: str) -> str:
    """Returns the place of a name of tf.estimator that `estimator_core`, a module or a class of it lacks; "" for other
    names.

    It is the end of a message. Names of a module or class begin with its name: `metrics.AUC`, `Estimator.fit`.
    """
    homes = _homes()
    return f": it is {homes[name]}" if name in homes else ""


@functools.cache  # notebooks and `hasattr` look up many names that do not exist
def _homes() -> dict[str, str]:
    found: dict[str, str] = json.loads(Path(__file__).with_name("_homes.json").read_text(encoding="utf-8"))
    return found
