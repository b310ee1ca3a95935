"""The evaluation loop."""

from __future__ import annotations

from typing import Any

from estimator_core._loop.agreement import Breaks
from estimator_core._loop.batches import Batches
from estimator_core._loop.calm_batches import calm_batches
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.run import LoopRun
from estimator_core._loop.total import Total


def evaluate_loop(
    run: LoopRun, batches: Batches, total: Total, hooks: HookSchedule, decisions: Breaks, *, steps: int | None
) -> dict[str, Any]:
    """Evaluates up to `steps` batches, None: the whole input; metrics are read from the device once, at the end.

    Hooks count batches here: `next_step` and `after_step` speak of the number of batches done.

    Args:
        run: what the hooks see.
        batches: at least one; several at a time where neither hooks nor host metrics want each by itself.
        total: adds up the metrics.
        hooks: which have been created.
        steps: number of batches.
        decisions: looked at before each batch is used.

    Raises:
        PreemptedError: broken off, because the platform wants a stop.
    """
    while steps is None or run.step < steps:
        if not calm_batches(run, batches, total, hooks, decisions):
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
