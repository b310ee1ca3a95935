"""Runs an experiment by the name of a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, ArgumentTypeError, did_you_mean
from estimator_experiment.experiment import Experiment
from estimator_experiment.hparams import HParams
from estimator_experiment.schedules import SCHEDULES

# Processes that train together make the same calls, so a worker runs the schedule of the chief.
_BY_ROLE = {
    "master": "train_and_evaluate",
    "chief": "train_and_evaluate",
    "worker": "train_and_evaluate",
    "ps": "run_std_server",
    "evaluator": "continuous_eval",
}


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: RunConfig | None = None,
    hparams: HParams | None = None,
) -> Any:
    """Makes an experiment and runs one of its methods.

    Args:
        experiment_fn: `(run_config, hparams) -> Experiment`.
        output_dir: the model_dir. Set exactly one of output_dir and run_config.
        schedule: the name of a method of Experiment. Default: by the role of this process, or "train_and_evaluate"
            without a cluster.
        run_config: a RunConfig with a model_dir.
        hparams: an HParams, or None.

    Returns:
        The result of the method.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used; raised before any work starts.

    Source: `tf.contrib.learn.learn_runner.run`.
    """
    if not callable(experiment_fn):
        raise ArgumentTypeError(f"Experiment builder {experiment_fn!r} is not callable.")
    if (output_dir is None) == (run_config is None):
        raise ArgumentError("Exactly one of output_dir and run_config must be given.")
    if hparams is not None and not isinstance(hparams, HParams):
        raise ArgumentTypeError(f"hparams must be ec.HParams, given: {hparams!r}.")
    if run_config is not None and not isinstance(run_config, RunConfig):
        raise ArgumentTypeError(f"run_config must be ec.RunConfig, given: {run_config!r}.")
    config = RunConfig(model_dir=output_dir) if run_config is None else run_config
    if config.model_dir is None:
        raise ArgumentError("Must specify a model directory in `run_config`: ec.RunConfig(model_dir=...).")
    experiment = checked_experiment(experiment_fn(config, hparams))
    asked = experiment.estimator.config.model_dir  # for a URL, `estimator.model_dir` is the copy on this machine
    if asked != config.model_dir:
        raise ArgumentError(
            f"The estimator of the experiment writes to {asked!r}, but run_config says {config.model_dir!r}. Pass "
            "run_config to the Estimator."
        )
    return schedule_of(experiment, _default_schedule(config) if schedule is None else schedule)()


def checked_experiment(found: object) -> Experiment:
    """Checks and returns the result of an experiment_fn.

    Raises:
        ArgumentTypeError: the result is not an Experiment.

    Example:
        >>> checked_experiment(None)
        Traceback (most recent call last):
        ...
        estimator_core.errors.ArgumentTypeError: Experiment builder did not return an Experiment instance, got ...
    """
    if not isinstance(found, Experiment):
        raise ArgumentTypeError(f"Experiment builder did not return an Experiment instance, got {type(found)} instead.")
    return found


def tune(experiment_fn: Callable[..., Experiment], tuner: Any) -> None:
    """Runs trials until the tuner has no more: `while tuner.next_trial(): tuner.run_experiment(experiment_fn)`."""
    while tuner.next_trial():
        tuner.run_experiment(experiment_fn)


def schedule_of(experiment: Experiment, name: Any) -> Callable[[], Any]:
    """Returns the method of an experiment with this name.

    Raises:
        ArgumentError: there is no such method. The message lists the existing ones.
    """
    if not isinstance(name, str) or name not in SCHEDULES:
        raise ArgumentError(
            f"Schedule references non-existent task {name!r}.{did_you_mean(name, SCHEDULES)} Schedules: "
            f"{', '.join(SCHEDULES)}."
        )
    return getattr(experiment, name)


def _default_schedule(config: RunConfig) -> str:
    if not config.cluster.cluster and config.task_type != "evaluator":
        return "train_and_evaluate"
    if config.task_type not in _BY_ROLE:
        raise ArgumentError(f"There is no default schedule for the role {config.task_type!r}; give schedule=...")
    return _BY_ROLE[config.task_type]
