"""A hook that ends training when evaluations have not improved for a number of steps."""

from __future__ import annotations

import os

import estimator_core as ec
from estimator_core.builtin_hooks import whole_steps


class StopWithoutImprovement(ec.Hook):
    """Stops when the best evaluation is `patience` steps old.

    It reads the recorded evaluations of a directory. estimator-hooks has early stopping with other rules.

    Args:
        eval_dir: the directory of the evaluations.
        metric: the metric to watch. Lower is better, unless `rises` is set.
        patience: steps without improvement.
        every_steps: steps between two checks.
        rises: whether higher values of the metric are better.

    Raises:
        ArgumentError, ArgumentTypeError: a number of steps is not a positive whole number.
    """

    def __init__(
        self,
        eval_dir: str | os.PathLike[str],
        metric: str = "loss",
        *,
        patience: int,
        every_steps: int,
        rises: bool = False,
    ) -> None:
        self._eval_dir, self._metric, self._rises = eval_dir, metric, rises
        self._patience = whole_steps(self, "patience", patience)
        self._every_steps = whole_steps(self, "every_steps", every_steps)

    def after_create(self, run: ec.Run) -> None:
        """Stops before the first step if an earlier call stopped there, so a repeated call does not train further."""
        self._look(run, run.step)

    def next_step(self, step: int) -> int:
        """Returns the next multiple of `every_steps`."""
        return (step // self._every_steps + 1) * self._every_steps

    def after_step(self, run: ec.Run, step: int, out: ec.StepOutputs) -> None:
        """Checks the evaluations so far."""
        del out
        self._look(run, step)

    def _look(self, run: ec.Run, step: int) -> None:
        sign = -1.0 if self._rises else 1.0
        seen = {
            at: sign * float(metrics[self._metric])
            for at, metrics in (ec.read_eval_metrics(self._eval_dir) if step else {}).items()
            if self._metric in metrics and at <= step
        }
        if not seen:
            return
        best = min(seen, key=lambda at: (seen[at], at))
        if max(seen) - best >= self._patience:
            run.request_stop(f"no better {self._metric} since step {best}")
