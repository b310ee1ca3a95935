"""The components and commands of estimator-runs. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator_core.plugins import Command, Component, hookimpl

if TYPE_CHECKING:
    from estimator_core.hooks import Hook
    from estimator_experiment.experiment import Experiment
    from estimator_experiment.hookspecs import RunCommand

ESTIMATOR_PLUGIN_API = (1, 1)

_FORMATS = (
    ("toml", "An experiment described in TOML."),
    ("yaml", "An experiment described in YAML 1.2."),
    ("yml", "An experiment described in YAML 1.2, by the shorter ending."),
)
_COMMANDS = (
    ("budget", "Find the learning rate, the batch size and the amount of data before a long training."),
    ("config", "Show, check and run configuration files of experiments."),
    ("crossval", "Train and evaluate an experiment fold by fold, as a configuration file says."),
    ("population", "Train several seeds or learning rates of an experiment together on one device."),
    ("reproduce", "Repeat a run in an environment like its own, and compare the weights bit for bit."),
    ("runs", "List, compare, plot, tag and remove runs."),
    ("sweep", "Search hyperparameters as a configuration file says, with Optuna."),
)


def estimator_components() -> Sequence[Component]:
    """Returns the readers of configuration files as programs of `estimator run`."""
    target = "estimator_runs.configuration.reading:read_program"
    return [Component(kind="program_format", name=name, target=target, summary=summary) for name, summary in _FORMATS]


def estimator_commands() -> Sequence[Command]:
    """Returns the commands."""
    return [Command(name=name, target=f"estimator_runs.cli.{name}", summary=summary) for name, summary in _COMMANDS]


@hookimpl(optionalhook=True)
def estimator_program_hooks(command: RunCommand, experiment: Experiment) -> Sequence[Hook]:
    """Returns the hook that records a start for `estimator reproduce`, and the one that stops a second run."""
    from estimator_runs.capsule.hook import CapsuleHook, stopping_hooks

    return [CapsuleHook(command, experiment), *stopping_hooks(command)]
