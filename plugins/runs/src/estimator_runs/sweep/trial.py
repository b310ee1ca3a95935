"""One trial: an experiment with the values of the trial, trained from evaluation to evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, NanLossDuringTrainingError
from estimator_core.summaries import read_eval_metrics
from estimator_runs.configuration.layers import Layer, Origin
from estimator_runs.configuration.overrides import layer_of
from estimator_runs.configuration.reading import Read, read_configuration
from estimator_runs.configuration.schema import Sweep
from estimator_runs.sweep.shelf import Outcome


def configured(path: Path, settings: Sequence[str], name: str, values: Mapping[str, Any], seed: int) -> Read:
    """A configuration with the values of a trial over it; the seed is used if the file has none.

    Raises:
        ConfigurationError: a value does not fit its key.
    """
    seeded = layer_of("run_config.tf_random_seed", seed, Origin(source="sweep.seed"))
    origin = Origin(source=name)
    layers = [layer for key, value in values.items() if (layer := layer_of(key, value, origin)) is not None]
    first: list[Layer] = [] if seeded is None else [seeded]
    return read_configuration(path, settings, more=first, over=layers)


def run_trial(read: Read, model_dir: Path, sweep: Sweep, is_pruned: Callable[[Mapping[int, float]], bool]) -> Outcome:
    """Trains and evaluates; continues from the checkpoint of an interrupted run.

    Args:
        read: the configuration of the trial.
        model_dir: the directory of the run.
        sweep: defines the evaluations and the objectives.
        is_pruned: takes the first objective by step; called after every evaluation but the last.

    Raises:
        ArgumentError: the plan has no last step, or an evaluation lacks an objective.
    """
    program = read.program()
    experiment = program.experiment_fn(program.run_config(str(model_dir)), program.hparams(""))
    last = experiment.train_steps
    if last is None:
        raise ArgumentError("A sweep needs to know when a trial is done: set train.max_steps.")
    every = sweep.every_steps or last
    steps: dict[int, float] = {}
    values: list[float] = []
    for step in [*range(every, last, every), last]:
        try:
            metrics = evaluated(experiment, step)
        except NanLossDuringTrainingError as error:
            return Outcome(state="FAIL", steps=steps, reason=str(error))
        values = [_objective(metrics, one.metric) for one in sweep.objectives]
        if not all(map(math.isfinite, values)):
            return Outcome(state="FAIL", steps=steps, reason=f"an objective is {values} at step {step}")
        steps[step] = values[0]
        if step < last and is_pruned(steps):
            return Outcome(state="PRUNED", values=values, steps=steps)
    return Outcome(state="COMPLETE", values=values, steps=steps if len(sweep.objectives) == 1 else {})


def evaluated(experiment: Any, step: int) -> Mapping[str, Any]:
    """The metrics at a step. Trains up to it and evaluates, unless both are done already."""
    estimator = experiment.estimator
    done = read_eval_metrics(estimator.eval_dir())
    if step in done:
        return done[step]
    estimator.train(experiment.train_input_fn, hooks=experiment.train_hooks, max_steps=step)
    return estimator.evaluate(experiment.eval_input_fn, steps=experiment.eval_steps, hooks=experiment.eval_hooks)


def _objective(metrics: Mapping[str, Any], name: str) -> float:
    if name not in metrics:
        known = sorted(key for key, value in metrics.items() if isinstance(value, int | float))
        raise ArgumentError(f"The evaluation has no metric {name!r}, by which the sweep judges. It has {known}.")
    return float(metrics[name])
