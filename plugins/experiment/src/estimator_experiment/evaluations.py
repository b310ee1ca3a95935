"""Evaluations at intervals of steps: of the checkpoint of that step if it exists, otherwise of the state in memory."""

from __future__ import annotations

from dataclasses import replace

from estimator_core.estimator import Estimator
from estimator_core.hooks import Run
from estimator_core.specs import EvalSpec
from estimator_core.train_eval import Evaluations


class EvaluationsEvery(Evaluations):
    """Evaluates at its steps and at the end. Checkpoints at other steps are not evaluated.

    The result of a checkpoint is recorded with it, and its exporters run. BestExporter and early stopping can choose
    only such results.

    Args:
        estimator: the Estimator that trains.
        spec: the evaluation.
        every: the number of steps between evaluations. 0: only at the end.
    """

    def __init__(self, estimator: Estimator, spec: EvalSpec, every: int) -> None:
        super().__init__(estimator, [replace(spec, every_steps=every or None)])
        self._every = every

    def evaluate(self, run: Run) -> None:
        """Evaluates a checkpoint that is about to be saved, if its step is due or if the run ends with it."""
        ends = run.stop_reason is not None or run.step == run.last_step
        if ends or (self._every and run.step % self._every == 0):
            super().evaluate(run)


def evaluations_of(estimator: Estimator, spec: EvalSpec, every: int | None) -> Evaluations:
    """Returns the evaluations of a run: every `every` steps, or at every checkpoint if `every` is None."""
    return Evaluations(estimator, [spec]) if every is None else EvaluationsEvery(estimator, spec, every)
