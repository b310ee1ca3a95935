"""Looks at the recorded values of a metric at intervals, and stops by a rule."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from estimator_core.hooks import Run, StepOutputs
from estimator_hooks.early_stopping.agreement import same_on_all_processes
from estimator_hooks.early_stopping.best_weights import BestWeights
from estimator_hooks.early_stopping.criteria import Rule, best_step
from estimator_hooks.early_stopping.evaluated_metric import EvaluatedMetric
from estimator_hooks.early_stopping.predicate_hook import StopOnPredicateHook

_log = logging.getLogger("estimator_hooks")


class MetricStoppingHook(StopOnPredicateHook):
    """Requests a stop when a rule finds a reason in the evaluations recorded so far.

    The values it has seen are kept in the checkpoint: a resumed run decides as the uninterrupted one, wherever its
    evaluation directory is.

    Args:
        eval_dir: where the evaluations are recorded.
        metric: the name of the metric.
        rule: when to stop.
        run_every_secs, run_every_steps: see `StopOnPredicateHook`.
        restore_best: end with the weights of the best evaluation, however training ends at a step known beforehand.
    """

    def __init__(
        self,
        eval_dir: str,
        metric: str,
        rule: Rule,
        *,
        run_every_secs: float | None,
        run_every_steps: int | None,
        restore_best: bool,
    ) -> None:
        super().__init__(lambda: False, run_every_secs, run_every_steps)
        self._metric = metric
        self._rule = rule
        self._restore_best = restore_best
        self._evaluations = EvaluatedMetric(eval_dir, metric)
        self._best: BestWeights | None = None
        self._last_step: int | None = None
        self._put_back_at: int | None = None
        self._writes = True

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or goes on with that of the interrupted call."""
        super().after_create(run)
        self._best = BestWeights(run.model_dir) if self._restore_best else None
        self._last_step, self._put_back_at, self._writes = run.last_step, None, run.config.is_chief

    def next_step(self, step: int) -> int | None:
        """The timer's; with `restore_best` the last step too."""
        due = super().next_step(step)
        if self._best is None or self._last_step is None or step >= self._last_step:
            return due
        return self._last_step if due is None else min(due, self._last_step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Applies the rule, when the timer is due."""
        ends = step == self._last_step
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            values = self._evaluations.read(step)
            reason = self._rule.reason(self._metric, values)
            self._keep_best(values)
            if same_on_all_processes(reason is not None):
                run.request_stop(f"early stopping: {reason or 'decided by the first process'}")
                ends = True
        if ends:
            self._put_best_back(run, step)

    def end(self, run: Run) -> None:
        """Says so where the weights could not be put back."""
        if self._best is not None and run.stop_reason is not None and not run.failed and not run.interrupted:
            best = best_step(self._rule.better, self._evaluations.values)
            if best is not None and self._put_back_at != run.step and best != run.step:
                _log.warning(
                    "restore_best: training ended at step %d without notice (%s). The weights of step %d, the best "
                    "evaluation, are kept in %s.",
                    run.step,
                    run.stop_reason,
                    best,
                    run.model_dir / "best_weights",
                )

    def state(self) -> Mapping[str, Any]:
        """The cadence, and the values seen."""
        seen = {str(step): value for step, value in self._evaluations.values.items()}
        return {"timer": dict(super().state()), "seen": seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes both back."""
        super().restore(state["timer"])
        self._evaluations.values = {int(step): float(value) for step, value in state["seen"].items()}

    def _keep_best(self, values: Mapping[int, float]) -> None:
        best = best_step(self._rule.better, values)
        if self._best is not None and best is not None and self._writes:
            self._best.keep(best)

    def _put_best_back(self, run: Run, step: int) -> None:
        if self._best is None:
            return
        values = self._evaluations.read(step)
        best = best_step(self._rule.better, values)
        self._put_back_at = step
        if best is not None and best != step:
            self._best.put_back(run, best)
            if step in values and self._writes:
                self._evaluations.repeat(best, as_step=step)
