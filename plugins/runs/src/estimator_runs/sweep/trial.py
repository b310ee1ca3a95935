"""One trial: an experiment with the values of the trial, trained from evaluation to evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.checkpoint import checkpoint_step, read_checkpoint
from estimator_core.errors import ArgumentError, NanLossDuringTrainingError
from estimator_core.inputs import InputPosition
from estimator_core.summaries import read_eval_metrics
from estimator_core.train_eval import training_batches
from estimator_runs.configuration.layers import Layer, Origin
from estimator_runs.configuration.overrides import layer_of
from estimator_runs.configuration.reading import Read, read_configuration
from estimator_runs.configuration.schema import Sweep
from estimator_runs.ended import ended_step
from estimator_runs.sweep.directory import Outcome


def configured(path: Path, settings: Sequence[str], name: str, values: Mapping[str, Any], seed: int) -> Read:
    """Returns a configuration with the values of a trial. The seed applies if the file has none.

    Raises:
        ConfigurationError: a value does not fit its key.
    """
    seeded = layer_of("run_config.tf_random_seed", seed, Origin(source="sweep.seed"))
    origin = Origin(source=name)
    layers = [layer for key, value in values.items() if (layer := layer_of(key, value, origin)) is not None]
    first: list[Layer] = [] if seeded is None else [seeded]
    return read_configuration(path, settings, more=first, over=layers)


def run_trial(read: Read, model_dir: Path, sweep: Sweep, is_pruned: Callable[[Mapping[int, float]], bool]) -> Outcome:
    """Trains and evaluates. It continues from the checkpoint of an interrupted run.

    Args:
        read: the configuration of the trial.
        model_dir: the directory of the run.
        sweep: the search, which defines the evaluations and the objectives.
        is_pruned: a function of the first objective by step. It is called after every evaluation except the last.

    Raises:
        ArgumentError: the plan has no last step, a hook has restore_best although there are evaluations in between, or
            an evaluation lacks an objective.
    """
    program = read.program()
    experiment = program.experiment_fn(program.run_config(str(model_dir)), program.hparams(""))
    last = experiment.train_steps
    if last is None:
        raise ArgumentError("A sweep needs to know when a trial ends: set train.max_steps.")
    every = sweep.every_steps or last
    if every < last:
        _check_parts(experiment.train_hooks)
    steps: dict[int, float] = {}
    values: list[float] = []
    before = 0
    for step in [*range(every, last, every), last]:
        try:
            metrics, stands = evaluated(experiment, step, before)
        except NanLossDuringTrainingError as error:
            return Outcome(state="FAIL", steps=steps, reason=str(error))
        values = [_objective(metrics, one.metric) for one in sweep.objectives]
        if not all(map(math.isfinite, values)):
            return Outcome(state="FAIL", steps=steps, reason=f"an objective is {values} at step {stands}")
        steps[stands] = values[0]
        if stands < step:  # the training has ended at the end of its input, or a hook stopped it
            break
        if step < last and is_pruned(steps):
            return Outcome(state="PRUNED", values=values, steps=steps)
        before = step
    return Outcome(state="COMPLETE", values=values, steps=steps if len(sweep.objectives) == 1 else {})


def _check_parts(hooks: Sequence[object]) -> None:
    """Refuses hooks that would act at the end of each part of a trial."""
    for hook in hooks:
        if getattr(hook, "restore_best", False):
            raise ArgumentError(
                f"{type(hook).__name__} has restore_best, which restores the best weights when training ends, but with "
                "sweep.every_steps a trial is trained in parts: each would continue from those weights. Leave out one "
                "of the two."
            )


def evaluated(experiment: Any, step: int, before: int = 0) -> tuple[Mapping[str, Any], int]:
    """Returns the metrics at a step, and the step. If the training has ended earlier, it is that earlier step.

    It trains up to the step and evaluates, unless both are done. An input that has ended does not start again, nor does
    a training that a hook has stopped between the step `before`, where the last part ended, and this step.
    """
    estimator = experiment.estimator
    done = read_eval_metrics(estimator.eval_dir())
    if step in done:
        return done[step], step
    if not _nothing_left(experiment, before):
        estimator.train(experiment.train_input_fn, hooks=experiment.train_hooks, max_steps=step)
    path = estimator.latest_checkpoint()
    stands = step if path is None else checkpoint_step(path)  # without one, the evaluation reports it
    if stands in done:
        return done[stands], stands
    metrics = estimator.evaluate(experiment.eval_input_fn, steps=experiment.eval_steps, hooks=experiment.eval_hooks)
    return metrics, stands


def _nothing_left(experiment: Any, before: int) -> bool:
    """Returns whether the training has ended by itself after the step `before`, or its input at the newest checkpoint.

    An input whose position is only a count is not checked, because it would be read up to there once more.
    """
    estimator = experiment.estimator
    if (ended_step(estimator) or 0) > before:
        return True
    position = _position(estimator)
    if position is None or position.exhausted or position.source_state is None:
        return position is not None and position.exhausted
    source = training_batches(estimator, experiment.train_input_fn, position)
    try:
        next(source, None)
        return source.ended
    finally:
        source.close()


def input_ended(estimator: Any) -> bool:
    """Returns whether the input has ended according to the newest checkpoint."""
    position = _position(estimator)
    return position is not None and position.exhausted


def _position(estimator: Any) -> InputPosition | None:
    path = estimator.latest_checkpoint()
    said = None if path is None else read_checkpoint(path, items=("input",)).input
    return None if said is None else InputPosition.from_json(said)


def _objective(metrics: Mapping[str, Any], name: str) -> float:
    if name not in metrics:
        known = sorted(key for key, value in metrics.items() if isinstance(value, int | float))
        raise ArgumentError(f"The evaluation has no metric {name!r}, which the sweep compares. It has {known}.")
    return float(metrics[name])
