"""Runs the steps that no hook needs to see, which are most steps, with as few calls and objects as possible."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from estimator_core._loop.batches import Batches
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import InFlightLimiter, Program
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.run import LoopRun

if TYPE_CHECKING:
    from estimator_core._loop.agreement import Decisions


def run_unobserved(
    run: LoopRun,
    state: DeviceState,
    batches: Batches,
    step: Program,
    hooks: HookSchedule,
    limiter: InFlightLimiter,
    decisions: Decisions,
) -> bool:
    """Works like the training loop, until a hook, a clock, the platform or the end of the input needs the loop.

    The kernels of a step evict the caches of the processor, so each Python call takes several times longer than usual.

    Args:
        run: the run that hooks see.
        state: the state to advance.
        batches: the batches, used only while they come one by one.
        step: the compiled function for one step.
        hooks: the hooks, which report how long they do not need control.
        limiter: the limiter, which waits for earlier dispatches.
        decisions: the decisions, which are checked before each step.

    Returns:
        Whether a step was run.
    """
    source, platform, account, first = batches.singles(), decisions.platform, run.time_spent, run.step
    if source is None:
        return False
    last, deadline = hooks.unobserved_until()
    now, ended = monotonic(), False
    while run.step < last and now < deadline and run.stop_reason is None and not platform.requested:
        try:
            batch = next(source, None)
        except Exception as error:
            batches.end(error)
            batch = None
        account.drawn += monotonic() - now
        if batch is None:
            batches.end()
            ended = True
            break
        state.carried, values = step(state.carried, batch.features, batch.labels, batch.weights)
        state.position = batch.position
        state.step += 1
        run.step += 1
        run.batch_size = batch.size
        limiter.add(values["loss"])
        now = monotonic()
    if run.step == first:
        return False
    hooks.look()
    if ended:
        batches.raise_error()  # before a stop that was requested meanwhile hides the error
    return True
