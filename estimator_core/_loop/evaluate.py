"""The evaluation loop."""

from __future__ import annotations

from typing import Any

from estimator_core._loop.agreement import Decisions
from estimator_core._loop.eval_total import EvalTotal
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.run import LoopRun
from estimator_core._loop.steps_per_dispatch import TunedBatches
from estimator_core._loop.unobserved_batches import add_unobserved


def evaluate_loop(
    run: LoopRun,
    batches: TunedBatches,
    total: EvalTotal,
    hooks: HookSchedule,
    decisions: Decisions,
    *,
    steps: int | None,
) -> dict[str, Any]:
    """Evaluates up to `steps` batches (None: the whole input). Metrics are read from the device once, at the end.

    Hooks count batches here: the step in `next_step` and `after_step` is the number of finished batches.

    Args:
        run: the run that hooks see.
        batches: the batches, at least one. Several are used at a time if neither hooks nor host metrics need each batch
            separately.
        total: the total, which adds up the metrics.
        hooks: the hooks, after `after_create`.
        steps: the number of batches.
        decisions: the decisions, which are checked before each batch is used.

    Raises:
        PreemptedError: the platform requested a stop during the evaluation.
    """
    while steps is None or run.step < steps:
        if not add_unobserved(run, batches, total, hooks, decisions):
            dispatch = batches.draw(min(hooks.room(), total.room))
            if dispatch is None:
                batches.raise_error()
                break
            decisions.break_off(run)
            hooks.before(dispatch)
            values = total.add(dispatch)
            run.advance(dispatch)
            hooks.after(dispatch, values)
        if hooks.stops():
            break
        batches.tune(total, min(hooks.room(), total.room))
    hooks.catch_up()
    return total.compute()
