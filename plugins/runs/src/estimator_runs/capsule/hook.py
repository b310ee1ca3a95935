"""The hook of `estimator run` that writes the record of a start."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core.builtin_hooks import StopAtStepHook
from estimator_core.hooks import Hook
from estimator_core.journal import read_lineage
from estimator_core.storage import LocalStorage
from estimator_core.summaries import without_secrets
from estimator_experiment.hookspecs import RunCommand
from estimator_experiment.program import file_and_function
from estimator_runs.capsule.code import program_code
from estimator_runs.capsule.data import data_fingerprint
from estimator_runs.capsule.packages import environment, folders_of, installed
from estimator_runs.capsule.settings import LAST_STEP, hardware, told
from estimator_runs.capsule.start_records import keep

if TYPE_CHECKING:
    from estimator_core.hooks import Run
    from estimator_experiment.experiment import Experiment

_log = logging.getLogger("estimator_core")
_FORMAT = 1
_CONFIGURATIONS = (".toml", ".yaml", ".yml")


class CapsuleHook(Hook):
    """Writes the record from which a run can be repeated, after its first batch. An error of it never stops a run.

    Args:
        command: the arguments of `estimator run`.
        experiment: the experiment that the program returned.
    """

    def __init__(self, command: RunCommand, experiment: Experiment) -> None:
        self._command, self._experiment = command, experiment

    def after_create(self, run: Run) -> None:
        """Writes the record."""
        if not run.config.is_chief:
            return
        try:
            epoch = read_lineage(LocalStorage(run.model_dir)).epoch
            keep(Path(run.model_dir), self._capsule(run), epoch=epoch, step=run.first_step)
        except Exception as error:  # whatever the error is, the run matters more than its record
            _log.warning(
                "`estimator reproduce` will not know this start: its record could not be written (%s: %s).",
                type(error).__name__,
                error,
            )

    def _capsule(self, run: Run) -> dict[str, Any]:
        path = program_path(self._command.file)
        record = json.loads((Path(run.model_dir) / "run.json").read_text())
        packages = installed()
        flags, seeds = told(record, _configuration(path, self._command.settings))
        return {
            "format": _FORMAT,
            "command": {"directory": str(Path.cwd()), "words": without_secrets(self._command.words())},
            "packages": environment(packages),
            "code": program_code(path, folders_of(packages)),
            "flags": flags,
            "seeds": seeds,
            "hardware": hardware(),
            "data": data_fingerprint(self._experiment.train_input_fn, run.batch, step=run.first_step + 1),
        }


def stopping_hooks(command: RunCommand) -> list[Hook]:
    """Returns the hook that stops a repeated run at the newest step of the first run; [] in other runs.

    `continuous_train_and_eval` must end by itself, because it would continue to train after each stop.
    """
    last_step = os.environ.get(LAST_STEP)
    if last_step is None or command.schedule == "continuous_train_and_eval":
        return []
    return [StopAtStepHook(last_step=int(last_step))]


def program_path(file: str) -> Path:
    """Returns the path of a program, without the function.

    Example:
        >>> program_path("line.py:other").name
        'line.py'
    """
    return Path(file_and_function(file)[0])


def _configuration(path: Path, settings: tuple[str, ...]) -> dict[str, Any]:
    """Returns the effective values of a configuration file; empty for a program in Python."""
    if path.suffix not in _CONFIGURATIONS:
        return {}
    from estimator_runs.configuration.reading import read_configuration
    from estimator_runs.configuration.show import effective

    return {key: value for key, value, _ in effective(read_configuration(path, settings))}
