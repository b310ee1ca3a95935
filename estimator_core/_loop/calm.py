"""Steps that nobody wants to see, which are most of them, made with as few calls and objects as possible."""

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


def calm_steps(
    run: LoopRun,
    state: DeviceState,
    batches: Batches,
    step: Program,
    hooks: HookSchedule,
    limiter: InFlightLimiter,
    decisions: Decisions,
) -> bool:
    """Does what the training loop does, until a hook, a clock, the platform or the end of the input needs the loop.

    Beside the kernels of a step, which empty the caches of a processor, each call of Python takes several times as long
    as by itself.

    Args:
        run: what the hooks see.
        state: the state to advance.
        batches: used only while they come one by one.
        step: the compiled function for one step.
        hooks: say how long they want no control.
        limiter: waits for earlier dispatches.
        decisions: looked at before each step.

    Returns:
        Whether it made a step.
    """
    source, platform, account, first = batches.singles(), decisions.platform, run.time_spent, run.step
    if source is None:
        return False
    last, deadline = hooks.calm()
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
        batches.raise_error()  # before a stop that was requested meanwhile hides it
    return True
