"""The dry run of a program without an experiment_fn: the program runs, and its calls of Estimators are only tried.

These calls return results without values: metrics that are NaN, and predictions and variables that are zeros.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import math
import runpy
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from estimator_core.errors import ArgumentError, CheckpointNotFoundError
from estimator_core.estimator import Estimator
from estimator_core.modes import ModeKeys
from estimator_core.specs import EvalSpec, TrainSpec
from estimator_core.train_eval import check_specs
from estimator_experiment.experiment import Experiment
from estimator_experiment.faults import fault
from estimator_experiment.opened_again import random_numbers_kept
from estimator_experiment.rehearsal import Faults, Trial, TriedInput

#: The errors of a program that reads results which a dry run does not have.
_NEEDS_RESULTS = (CheckpointNotFoundError, OSError, StopIteration, AssertionError)


def is_script(file: str) -> bool:
    """Returns whether a Python file has no experiment_fn, so it is a complete program. The file is read but not run.

    Args:
        file: the file in the form of `load_program`.
    """
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        return False
    try:
        body = ast.parse(path.read_bytes(), str(path)).body
    except (SyntaxError, ValueError):
        return False
    return "experiment_fn" not in {name for statement in body for name in _bound(statement)}


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((each.asname or each.name).partition(".")[0] for each in statement.names)
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def try_script(file: str, arguments: str) -> int:
    """Runs a program whose calls of Estimators are tried, and prints the faults.

    Args:
        file: the path of the program.
        arguments: the command line of the program.

    Returns:
        0 if there is no fault, otherwise 1.

    Raises:
        ArgumentError: the program calls no Estimator.
    """
    calls = _Calls()
    ending = _run(file, shlex.split(arguments), calls)
    if not calls.places:
        if isinstance(ending, Exception):
            raise ending
        raise ArgumentError(
            f"{file} defines no experiment_fn(run_config, hparams), and as a program it called no method of an "
            "Estimator. Give the arguments with which it trains: --arguments=TEXT."
        )
    print("\n".join(["", *(f"tried     {place}" for place in calls.places)]))
    for told in dict.fromkeys(calls.left_out):
        print(told)
    if isinstance(ending, Exception):
        line = _line(ending, file)
        if isinstance(ending, _NEEDS_RESULTS):
            print(f"The program after {line} is not tried, because it needs results: {type(ending).__name__}: {ending}")
        else:
            calls.faults.add(fault(f"The program, in {line}", ending))
    for at, found in enumerate(calls.faults.found, 1):
        print(f"{at}. {found}")
    count = len(calls.faults.found)
    if count:
        print(f"\n{count} fault{'s' if count > 1 else ''}; nothing was trained.")
        return 1
    print("Inputs, modes and exports fit together.")
    return 0


def _run(file: str, arguments: Sequence[str], calls: _Calls) -> Exception | None:
    """Runs the program to its end, or to its first error, which is returned."""
    folder = str(Path(file).parent.resolve())
    before = sys.argv, list(sys.path)
    sys.argv = [file, *arguments]
    sys.path.insert(0, folder)
    try:
        with calls.instead(), random_numbers_kept():
            runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            return ArgumentError(f"it ended with {end.code!r}")
    except Exception as error:
        return error
    finally:
        sys.argv, sys.path[:] = before
    return None


def _line(error: BaseException, file: str) -> str:
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"line {own[-1].lineno}" if own else file


class _Results(dict[str, Any]):
    """Metrics that were not computed: NaN under any name."""

    def __missing__(self, name: str) -> float:
        return math.nan


class _Calls:
    """The calls of Estimators in a program, which are only tried.

    Attributes:
        places: the calls with their lines.
        faults: the faults.
        left_out: the parts that were not tried.
    """

    def __init__(self) -> None:
        self.places: list[str] = []
        self.faults = Faults()
        self.left_out: list[str] = []
        self._trials: dict[int, tuple[Estimator, Trial]] = {}

    @contextlib.contextmanager
    def instead(self) -> Generator[None]:
        """Replaces, within the block, the methods of Estimators and the functions that call them by trials."""
        homes = [importlib.import_module(name) for name in ("estimator_core", "estimator_core.train_eval")]
        changes: list[tuple[Any, str, Any]] = [
            (Estimator, "train", self._train()),
            (Estimator, "evaluate", self._evaluate()),
            (Estimator, "predict", self._predict()),
            (Estimator, "export_saved_model", self._export()),
            (Estimator, "experimental_export_all_saved_models", self._export_all()),
            (Estimator, "variables", property(self._values)),
            (Estimator, "get_variable_names", lambda estimator: sorted(self._values(estimator))),
            (Estimator, "get_variable_value", lambda estimator, name: self._values(estimator)[name]),
            (Experiment, "train_and_evaluate", self._experiment()),
            *((home, "train_and_evaluate", self._train_and_evaluate) for home in homes),
        ]
        with contextlib.ExitStack() as back:
            self._scratch = back.enter_context(tempfile.TemporaryDirectory(prefix="estimator-dry-run-"))
            for owner, name, other in changes:
                back.callback(
                    setattr, owner, name, vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
                )
                setattr(owner, name, other)
            yield

    def _called(self, estimator: Estimator, what: str) -> tuple[Trial, str]:
        """Returns the trial of an Estimator, and the place of a call."""
        program = [frame for frame in traceback.extract_stack() if frame.filename == sys.argv[0]]
        place = f"{what} in line {program[-1].lineno}" if program else what
        self.places.append(place)
        if id(estimator) not in self._trials:
            self._trials[id(estimator)] = estimator, Trial(estimator, self.left_out.append, self.faults)
        return self._trials[id(estimator)][1], place

    def _values(self, estimator: Estimator) -> dict[str, np.ndarray]:
        """Returns the variables declared so far, filled with zeros."""
        known = self._trials.get(id(estimator))
        specs = {} if known is None else known[1].tried.programs.specs
        return {name: np.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}

    def _train(self) -> Callable[..., Estimator]:
        def train(
            estimator: Estimator,
            input_fn: Any,
            hooks: Any = None,
            steps: Any = None,
            max_steps: Any = None,
            saving_listeners: Any = None,
        ) -> Estimator:
            trial, place = self._called(estimator, "train")
            trial.mode(_input(ModeKeys.TRAIN, place, input_fn, hooks))
            return estimator

        return train

    def _evaluate(self) -> Callable[..., _Results]:
        def evaluate(
            estimator: Estimator,
            input_fn: Any,
            steps: Any = None,
            hooks: Any = None,
            checkpoint_path: Any = None,
            name: Any = None,
            *,
            slices: Any = (),
        ) -> _Results:
            trial, place = self._called(estimator, "evaluate")
            trial.mode(_input(ModeKeys.EVAL, place, input_fn, hooks, whole=steps is None))
            return _Results(loss=math.nan, global_step=0)

        return evaluate

    def _predict(self) -> Callable[..., Iterator[Any]]:
        def predict(
            estimator: Estimator,
            input_fn: Any,
            predict_keys: Any = None,
            hooks: Any = None,
            checkpoint_path: Any = None,
            yield_single_examples: bool = True,
        ) -> Iterator[Any]:
            trial, place = self._called(estimator, "predict")
            trial.mode(_input(ModeKeys.PREDICT, place, input_fn, hooks))
            return _zeros(trial.predictions, predict_keys, single=yield_single_examples)

        return predict

    def _export(self) -> Callable[..., str]:
        def export_saved_model(
            estimator: Estimator,
            export_dir_base: Any,
            serving_input_receiver_fn: Any,
            assets_extra: Any = None,
            checkpoint_path: Any = None,
            experimental_mode: str = ModeKeys.PREDICT,
            *,
            format: str = "stablehlo",
            as_text: bool = False,
        ) -> str:
            receivers = {experimental_mode: serving_input_receiver_fn}
            return self._exported(estimator, receivers, assets_extra, format, "export_saved_model")

        return export_saved_model

    def _export_all(self) -> Callable[..., str]:
        def export_all(
            estimator: Estimator,
            export_dir_base: Any,
            input_receiver_fn_map: Any,
            assets_extra: Any = None,
            checkpoint_path: Any = None,
            *,
            format: str = "stablehlo",
        ) -> str:
            name = "experimental_export_all_saved_models"
            return self._exported(estimator, input_receiver_fn_map, assets_extra, format, name)

        return export_all

    def _exported(
        self, estimator: Estimator, receivers: Mapping[str, Any], assets: Any, format_name: str, what: str
    ) -> str:
        trial, place = self._called(estimator, what)
        for mode, receiver in receivers.items():
            with self.faults.at(place):
                trial.tried.check_export(receiver, assets, mode, format=format_name)
        return self._scratch

    def _train_and_evaluate(self, estimator: Estimator, train_spec: TrainSpec, eval_spec: Any) -> tuple[Any, Any]:
        return self._run_of(estimator, train_spec, eval_spec, "train_and_evaluate")

    def _experiment(self) -> Callable[..., tuple[Any, Any]]:
        def train_and_evaluate(experiment: Experiment) -> tuple[Any, Any]:
            return self._run_of(experiment.estimator, *experiment.specs(), "Experiment.train_and_evaluate")

        return train_and_evaluate

    def _run_of(self, estimator: Estimator, train_spec: TrainSpec, eval_spec: Any, what: str) -> tuple[Any, Any]:
        trial, place = self._called(estimator, what)
        specs = check_specs(estimator, train_spec, eval_spec)
        trial.find(train_spec, specs, predicts=False, within=f" of {place}")
        results = [_Results(loss=math.nan, global_step=train_spec.max_steps or 0) for _ in specs]
        exports = [[self._scratch for _ in spec.exporters] for spec in specs]
        if isinstance(eval_spec, EvalSpec):
            return results[0], exports[0]
        names = [spec.name for spec in specs]
        return dict(zip(names, results, strict=True)), dict(zip(names, exports, strict=True))


def _input(mode: str, place: str, input_fn: Any, hooks: Any, *, whole: bool = False) -> TriedInput:
    return TriedInput(mode=mode, place=f"The input of {place}", input_fn=input_fn, hooks=hooks or (), whole=whole)


def _zeros(predictions: Any, keys: Sequence[Any] | None, *, single: bool) -> Iterator[Any]:
    """Yields predictions for the first batch, filled with zeros."""
    if predictions is None:
        return
    if keys and isinstance(predictions, Mapping):
        predictions = {name: predictions[name] for name in keys}
    arrays = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), predictions)
    if not single:
        yield arrays
        return
    for row in range(min((len(leaf) for leaf in jax.tree.leaves(arrays)), default=0)):
        yield jax.tree.map(lambda leaf, row=row: leaf[row], arrays)
