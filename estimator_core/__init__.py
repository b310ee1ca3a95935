"""Estimators on JAX: write a `model_fn` once; train, evaluate, predict, export and serve it anywhere JAX runs.

Importing this package imports neither jax nor orbax, because each public name is imported when it is first used.
`__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

from estimator_core import _moved

__version__ = "0.1.0"

_SUBMODULES = (
    *("agreement", "backends", "builtin_hooks", "checkpoint", "cli", "config", "coordinator", "errors", "estimator"),
    *("export", "heads", "hooks", "hookspecs", "inputs", "journal", "learn_runner", "lowering", "metrics", "model"),
    *("modes", "plugins", "predictor", "specs", "storage", "summaries", "summary", "testing", "train_eval"),
)

_HOME = {
    "modes": ("ModeKeys",),
    "specs": ("EstimatorSpec", "EvalSpec", "Scaffold", "TrainSpec"),
    "_backends.partition": ("gathered", "with_logical_constraint"),
    "_cluster": ("Processes",),
    "config": ("FullySharded", "KeepBest", "RunConfig"),
    "hooks": ("CheckpointListener", "Hook", "Run", "StepOutputs", "Wake"),
    "heads": ("Head",),
    "errors": ("EstimatorError", "NanLossDuringTrainingError"),
    "estimator": ("Estimator",),
    "predictor": ("Predictor",),
    "train_eval": ("train_and_evaluate",),
    "_estimator_internals": ("with_model_fn",),
    "_step.train_op": ("custom_train_op", "group", "minimize"),
    "_step.sparse": ("sparse_lookup",),
    "_metrics.example_weights": ("example_weights",),
    "_model.access": ("get_variable", "next_rng_key", "set_variable", "trainable_variables", "variable_scope"),
    "_model.module": ("module",),
    "_model.tensors": ("tensor",),
    "_checkpoint.catalog": ("latest_checkpoint",),
    "_checkpoint.read": ("load_variables",),
    "_summaries.eval_metrics": ("read_eval_metrics",),
    "_plugins": ("Plugins",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _moved.MOVED:
        value = _moved.load_moved(name)
    elif name in _MODULE_OF:
        value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_moved.home_of(name)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_SUBMODULES, *_MODULE_OF, *_moved.moved_names()})
