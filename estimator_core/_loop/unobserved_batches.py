"""Adds the batches of an evaluation that no hook needs to see, with as few calls as possible.

`unobserved_steps.py` does the same for training.
"""

from __future__ import annotations

from time import monotonic

from estimator_core._loop.agreement import Decisions
from estimator_core._loop.eval_total import EvalTotal
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.run import LoopRun
from estimator_core._loop.steps_per_dispatch import TunedBatches


def add_unobserved(
    run: LoopRun, batches: TunedBatches, total: EvalTotal, hooks: HookSchedule, decisions: Decisions
) -> bool:
    """Works like the evaluation loop, until a hook, a clock, the tuner or the end of the input needs the loop.

    Args:
        run: the run that hooks see.
        batches: the batches, used only while they come one by one.
        total: the total that accumulates the metrics. It is used only while all of them are on the device.
        hooks: the hooks, which report how long they do not need control.
        decisions: the decisions, which are checked before each batch is used.

    Returns:
        Whether a batch was added.
    """
    source, first, room = batches.singles(), run.step, total.batches_until_log()
    if source is None or room < 1:
        return False
    last, deadline = hooks.unobserved_until()
    now, account, batch, add = monotonic(), run.time_spent, None, total.adder()
    last, deadline = min(last, first + room), min(deadline, now + batches.until_tuned())
    while run.step < last and now < deadline and run.stop_reason is None:
        try:
            drawn = next(source, None)
        except Exception as error:
            batches.end(error)
            drawn = None
        account.drawn += monotonic() - now
        if drawn is None:
            batches.end()
            break
        decisions.break_off(run)
        add(drawn)
        batch = drawn
        run.step += 1
        run.batch_size = batch.size
        now = monotonic()
    if batch is None:
        return False
    batches.used(batch, run.step - first)
    total.log_progress(first)
    hooks.look()
    return True
