"""Evaluates the averaged weights during training."""

from __future__ import annotations

from estimator_core.hooks import Run
from estimator_hooks.averaging.transformation import averages_in
from estimator_hooks.in_memory_evaluator import InMemoryEvaluatorHook


class AveragedWeightsEvaluatorHook(InMemoryEvaluatorHook):
    """Evaluates the average that `ema_of_weights` keeps, at the start, at intervals and at the end of training.

    The arguments are those of `InMemoryEvaluatorHook`. Set `name`, for example to "ema", to separate the results from
    those of the plain weights. For early stopping on the average, use `stop_if_no_decrease_hook(..., eval_name="ema")`.

    Raises:
        HookError: the optimizer keeps no average; raised in the run.
    """

    def _evaluate(self, run: Run) -> None:
        averages, weights = averages_in(run.state.opt_state), run.state.variables
        with run.swapped({path: value.astype(weights[path].dtype) for path, value in averages.items()}):
            super()._evaluate(run)
