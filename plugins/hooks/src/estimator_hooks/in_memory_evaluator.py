"""Evaluates the weights in memory at chosen steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimator_core.builtin_hooks import whole_steps
from estimator_core.errors import check_count
from estimator_core.hooks import Hook, Run, StepOutputs
from estimator_core.summaries import read_eval_metrics
from estimator_hooks.early_stopping.agreement import same_on_all_processes
from estimator_hooks.early_stopping.factories import check_estimator


class InMemoryEvaluatorHook(Hook):
    """Evaluates at the start of training, every `every_n_iter` steps, and at the end, without a checkpoint.

    Args:
        estimator: the Estimator that trains.
        input_fn: returns the evaluation batches.
        steps: the number of batches per evaluation. None evaluates the whole input.
        hooks: the hooks of the evaluations.
        name: the name of the evaluation. Results are written to `estimator.eval_dir(name)`.
        every_n_iter: the number of steps between evaluations.

    Raises:
        ArgumentTypeError: `estimator` is not an Estimator, or `every_n_iter` is not a number.
        ArgumentError: `every_n_iter` is not a positive whole number.

    Source: `tf.estimator.experimental.InMemoryEvaluatorHook`.
    """

    def __init__(
        self,
        estimator: Any,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ) -> None:
        check_estimator(estimator)
        if steps is not None:
            check_count("InMemoryEvaluatorHook: steps", steps)
        self._estimator = estimator
        self._arguments: dict[str, Any] = {"input_fn": input_fn, "steps": steps, "hooks": hooks, "name": name}
        self._every = whole_steps(self, "every_n_iter", every_n_iter)
        self._base = 0
        self._evaluated: int | None = None

    def after_create(self, run: Run) -> None:
        """Evaluates the first weights, unless this is a resumed call that has already done so."""
        if not run.resumed:
            self._base, self._evaluated = run.step, None
        if self._evaluated is None:
            # The checkpoint of this step is older than its evaluation, which may be recorded.
            if run.resumed and same_on_all_processes(run.config.is_chief and run.step in self._recorded()):
                self._evaluated = run.step
            else:
                self._evaluate(run)

    def next_step(self, step: int) -> int | None:
        """Returns the next step of the cadence, which counts from the start of the call."""
        return self._base + ((step - self._base) // self._every + 1) * self._every

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Evaluates the current weights."""
        self._evaluate(run)

    def end(self, run: Run) -> None:
        """Evaluates the last weights."""
        if not run.failed and not run.interrupted and self._evaluated != run.step:
            self._evaluate(run)

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return {"base": self._base, "evaluated": self._evaluated}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._base, self._evaluated = state["base"], state["evaluated"]

    def _recorded(self) -> Mapping[int, Any]:
        return read_eval_metrics(self._estimator.eval_dir(self._arguments["name"]))

    def _evaluate(self, run: Run) -> None:
        self._evaluated = run.step
        self._estimator.evaluate(**self._arguments)
