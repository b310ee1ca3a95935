"""The hook with which a user's own objective is pruned: it reports evaluations to Optuna and ends the training."""

from __future__ import annotations

from typing import Any

from estimator_core.builtin_hooks import whole_steps
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run, StepOutputs


class PruningHook(Hook):
    """Reports the evaluations of a training to a trial of Optuna. The training ends when Optuna prunes the trial.

    It is for a training of one process. A sweep of a configuration file does not need it.

    Args:
        trial: the `optuna.Trial` of the objective.
        metric: the metric to report.
        every_steps: the number of steps between two checks for new evaluations.
        name: the name of the evaluations, as in `EvalSpec`; None: those without a name.

    Attributes:
        pruned: whether Optuna has pruned the trial. Then the objective raises `optuna.TrialPruned`.

    Raises:
        ArgumentError, ArgumentTypeError: `every_steps` is not a positive whole number. In the run: an evaluation lacks
            the metric.

    Example:
        >>> import optuna
        >>> trial = optuna.trial.FixedTrial({})
        >>> PruningHook(trial, "loss", every_steps=100).pruned
        False
    """

    def __init__(self, trial: Any, metric: str, *, every_steps: int, name: str | None = None) -> None:
        self._every = whole_steps(self, "every_steps", every_steps)
        self._trial, self._metric, self._name = trial, metric, name
        self._seen = 0
        self.pruned = False

    def after_create(self, run: Run) -> None:
        """Ignores the evaluations of earlier calls."""
        self._seen = len(run.estimator.history.evaluations)

    def next_step(self, step: int) -> int:
        """Returns the next step after which it checks for evaluations."""
        return (step // self._every + 1) * self._every

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Reports new evaluations, and stops the training if Optuna prunes the trial."""
        if self._report(run) and self._trial.should_prune():
            self.pruned = True
            run.request_stop("Optuna prunes the trial")

    def end(self, run: Run) -> None:
        """Reports the remaining evaluations."""
        if not run.failed:
            self._report(run)

    def _report(self, run: Run) -> bool:
        """Reports new evaluations. Returns whether there were any."""
        rows = run.estimator.history.evaluations
        mine = [row for row in rows[self._seen :] if row["name"] == self._name]
        self._seen = len(rows)
        for row in mine:
            if self._metric not in row:
                known = sorted(set(row) - {"name", "global_step"})
                raise ArgumentError(f"PruningHook: the evaluation has no metric {self._metric!r}. It has {known}.")
            self._trial.report(float(row[self._metric]), int(row["global_step"]))
        return bool(mine)
