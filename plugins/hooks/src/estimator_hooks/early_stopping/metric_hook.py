"""Reads the recorded values of a metric at intervals, and stops by a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core.errors import HookError
from estimator_core.hooks import Run, StepOutputs
from estimator_core.storage import is_url
from estimator_hooks.early_stopping.agreement import is_alone, number_of_first_process, same_on_all_processes
from estimator_hooks.early_stopping.best_weights import BestWeights
from estimator_hooks.early_stopping.criteria import Rule, best_step
from estimator_hooks.early_stopping.evaluated_metric import EvaluatedMetric
from estimator_hooks.early_stopping.predicate_hook import StopOnPredicateHook


class MetricStoppingHook(StopOnPredicateHook):
    """Requests a stop when a rule finds a reason in the evaluations recorded so far.

    The checkpoint stores the values that it has seen. A resumed run therefore decides like an uninterrupted run,
    wherever its evaluation directory is.

    Args:
        eval_dir: the directory of the recorded evaluations.
        metric: the name of the metric.
        rule: the rule that decides when to stop.
        run_every_secs, run_every_steps: see `StopOnPredicateHook`.
        restore_best: whether training ends with the weights of the best evaluation, whatever ends it.

    Attributes:
        restore_best: the argument, for callers that train in parts.
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
        self.restore_best = restore_best
        self._evaluations = EvaluatedMetric(eval_dir, metric)
        self._best: BestWeights | None = None
        self._writes = True

    def begin(self, run: Run) -> None:
        """Resets the hook, so that it restores nothing before weights exist."""
        self._best = None

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues the one of the interrupted call.

        A new call stops before its first step if the evaluations of earlier calls are already a reason. Otherwise, each
        repetition of a program that has ended early would train one more step.

        Raises:
            HookError: the best weights could not be restored at the end.
        """
        super().after_create(run)
        if self.restore_best and is_url(str(run.config.model_dir)) and not is_alone():
            raise HookError(
                f"restore_best: {run.config.model_dir} is a URL, and each of several processes has only its part of a "
                "checkpoint there, so no process could restore the best weights. Train in one process, or in a "
                "directory that all share; or leave restore_best out and use the checkpoint that keep_checkpoint_best "
                "keeps."
            )
        self._best = BestWeights(run.model_dir) if self.restore_best else None
        self._writes = run.config.is_chief
        if not run.resumed:
            self._decide(run, run.step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Applies the rule, when the timer is due."""
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        self._decide(run, step)

    def _decide(self, run: Run, step: int) -> None:
        values = self._evaluations.read(step)
        reason = self._rule.reason(self._metric, values)
        self._keep_best(values)
        if same_on_all_processes(reason is not None):
            run.request_stop(f"early stopping: {reason or 'decided by the first process'}")

    def before_last_save(self, run: Run) -> None:
        """With `restore_best`, restores the weights of the best evaluation, including the last one.

        The current weights stay if the newest evaluation is better than those of all checkpoints, even if no checkpoint
        has these weights.
        """
        if self._best is None:
            return
        best = number_of_first_process(self._better_than_now(self._evaluations.read(run.step)))
        if best is not None and best != run.step:
            self._best.put_back(run, best)

    def _better_than_now(self, values: Mapping[int, float]) -> int | None:
        """Returns the step of the checkpoint with the best evaluation, or None if the newest evaluation is better."""
        kept = self._evaluations.of_checkpoints(values)
        newest = {step: values[step] for step in sorted(values)[-1:]}
        best = best_step(self._rule.better, {**kept, **newest})
        return best if best in kept else None

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence, and the values seen."""
        seen = {str(step): value for step, value in self._evaluations.values.items()}
        return {"timer": dict(super().state()), "seen": seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the cadence, and the values seen."""
        super().restore(state["timer"])
        self._evaluations.values = {int(step): float(value) for step, value in state["seen"].items()}

    def _keep_best(self, values: Mapping[int, float]) -> None:
        if self._best is None or not self._writes:
            return
        best = best_step(self._rule.better, self._evaluations.of_checkpoints(values))
        if best is not None:
            self._best.keep(best)
