"""A user's program, loaded from its file: what `estimator run` and `estimator plan` start from."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError
from estimator_experiment.hparams import HParams

_PREFIX = "run_config."


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a file gives to `estimator run`."""

    path: Path
    experiment_fn: Callable[..., Any]
    default_hparams: HParams | None
    serving_input_receiver_fn: Callable[[], Any] | None

    def hparams(self, text: str) -> HParams | None:
        """The file's hyperparameters, with those of the command line in their place."""
        if self.default_hparams is None:
            if text:
                raise ArgumentError(
                    f"{self.path} defines no HPARAMS, so --hparams has nothing to replace. Define HPARAMS = "
                    "ec.HParams(...) there."
                )
            return None
        values = HParams(**self.default_hparams.values())
        return values.parse(text) if text else values

    def run_config(self, model_dir: str | None, settings: Sequence[str]) -> RunConfig:
        """The RunConfig of the command line."""
        changes = dict(_setting(text) for text in settings)
        if model_dir is not None and "model_dir" in changes:
            raise ArgumentError("model_dir is given twice, by --model-dir and by --set.")
        changes.setdefault("model_dir", model_dir or f"runs/{self.path.stem}")
        return RunConfig(**changes)


def load_program(file: str) -> Program:
    """Runs a file and picks out what `estimator run` needs.

    Raises:
        ArgumentError: there is no such file or function.
    """
    name, _, function = file.partition(":") if not Path(file).exists() else (file, "", "")
    path = Path(name)
    if not path.is_file():
        raise ArgumentError(
            f"There is no file {name!r}. Give the path of a Python file that defines experiment_fn(run_config, "
            "hparams)."
        )
    module = _execute(path)
    found = getattr(module, function or "experiment_fn", None)
    if not callable(found):
        functions = sorted(
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__ and not isinstance(value, type)
        )
        raise ArgumentError(
            f"{name} defines no function {function or 'experiment_fn'!r}. Functions there: {functions}. Name one with "
            f"{name}:FUNCTION; it takes (run_config, hparams) and returns an ec.Experiment."
        )
    hparams = getattr(module, "HPARAMS", None)
    if hparams is not None and not isinstance(hparams, HParams):
        raise ArgumentError(f"HPARAMS in {name} must be an ec.HParams, given: {type(hparams).__name__}.")
    return Program(
        path=path,
        experiment_fn=found,
        default_hparams=hparams,
        serving_input_receiver_fn=getattr(module, "serving_input_receiver_fn", None),
    )


def _execute(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith(_PREFIX):
        raise ArgumentError(
            f"--set {text!r}: write {_PREFIX}FIELD=VALUE. Fields: {[field.name for field in fields(RunConfig)]}."
        )
    try:
        return name.removeprefix(_PREFIX), ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name.removeprefix(_PREFIX), value
