"""The training loop."""

from __future__ import annotations

from collections.abc import Mapping

from estimator_core._loop.agreement import Decisions
from estimator_core._loop.batches import Batches
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import InFlightLimiter, Program
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.run import LoopRun
from estimator_core._loop.unobserved_steps import run_unobserved


def train_loop(
    run: LoopRun,
    state: DeviceState,
    batches: Batches,
    programs: Mapping[int, Program],
    hooks: HookSchedule,
    limiter: InFlightLimiter,
    decisions: Decisions,
) -> str:
    """Trains until a hook requests a stop, `run.last_step` is reached, the input ends, or the platform interrupts.

    The host never waits for a value in this loop. Due hooks read outputs, and the limiter keeps the host a few
    dispatches ahead.

    Args:
        run: the run that hooks see.
        state: the state to advance.
        batches: the batches. `k` of them are drawn at once if no hook needs control for `k` steps.
        programs: the compiled functions by the number of steps of a dispatch.
        hooks: the hooks, after `after_create`.
        limiter: the limiter, which waits for earlier dispatches.
        decisions: the decisions, which are checked before each dispatch.

    Returns:
        The reason why training stopped.
    """
    hooks.agree()  # for a stop requested in after_create
    while (reason := decisions.stop_reason(run)) is None:
        if run_unobserved(run, state, batches, programs[1], hooks, limiter, decisions):
            continue
        dispatch = batches.draw(hooks.room())
        if dispatch is None:
            batches.raise_error()  # the error of the input, after all earlier batches were used
            reason = state.note_end_of_input()
            break
        hooks.before(dispatch)
        values = state.advance(programs, dispatch)
        run.advance(dispatch)
        limiter.add(values["loss"])
        hooks.after(dispatch, values)
    hooks.catch_up()
    return decisions.final_reason(run, reason)
