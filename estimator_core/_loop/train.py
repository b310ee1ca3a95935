"""The training loop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import Dispatcher, Program
from estimator_core._loop.hook_runner import HookRunner
from estimator_core._loop.outputs import LazyOutputs
from estimator_core._loop.pace import Pace
from estimator_core._loop.run import LoopRun
from estimator_core._loop.time_spent import HOOKS, INPUT, STEP


class Decisions(Protocol):
    """What does not follow from the steps alone: signals, clocks, hooks that ask for a stop."""

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        ...

    def look_at_clock(self) -> None:
        """Makes the hooks due whose time has come."""
        ...

    def settle(self, run: LoopRun) -> None:
        """Called where hooks had control: one process's request to stop is one of all."""
        ...


def train_loop(
    run: LoopRun,
    runner: HookRunner,
    dispatcher: Dispatcher,
    program: Callable[[int], Program],
    live: DeviceState,
    decisions: Decisions,
) -> str:
    """Runs steps until a stop is asked for, `run.last_step` is reached, the input ends, or the platform interrupts.

    The host never waits for the values of a step here: it stays a few dispatches ahead, and outputs are read by hooks
    that are due.

    Args:
        run: what the hooks see.
        runner: calls the hooks.
        dispatcher: gives the batches.
        program: gives the compiled function for a number of steps per dispatch.
        live: holds the state.
        decisions: asked before each dispatch, and told where hooks had control.

    Returns:
        Why it stopped.
    """
    pace = Pace()
    last_step = math.inf if run.last_step is None else run.last_step
    watches_clock, listens = runner.watches_clock, runner.listens
    programs = {count: program(count) for count in {1, dispatcher.k}}
    spent = run.time_spent
    waiting = functools.partial(spent.on, STEP)
    decisions.settle(run)
    held = None  # the loss of a step whose hooks are called once it is there, while the device goes on
    longest = dispatcher.k
    drawing = 0.0  # seconds of drawing that are not on the account yet
    written = True  # summaries, or a checkpoint whose commit is under way
    draw, dispatched = dispatcher.draw, pace.dispatched
    try:
        while True:
            if run.stop_reason is not None:
                reason = run.stop_reason
                break
            step = run.step
            if step >= last_step:
                reason = f"reached step {step}"
                break
            if decisions.requested:
                reason = INTERRUPTED
                break
            if watches_clock:
                decisions.look_at_clock()
            wake = runner.wake
            began = perf_counter()
            dispatch = draw((wake if wake < last_step else last_step) - step)
            took = perf_counter() - began
            drawing += took
            if dispatch is None:
                live.position = None if live.position is None else live.position._replace(exhausted=True)
                reason = "the input ended"
                break
            features, labels, weights, steps, last = dispatch
            upto = step + steps
            due = wake <= upto
            if due:
                spent.charge(INPUT, drawing)
                drawing = 0.0
                run.batch = last
                with spent.on(HOOKS):
                    runner.before(upto)
            live.carried, values = programs[steps](live.carried, features, labels, weights)
            live.position = last.position
            run.step = live.step = upto
            run.batch_size = last.size
            dispatched(values["loss"])
            if written:
                written = not run.look_after()
            if due or listens:
                # Where the input is slow the device waits anyway, and hooks would wait with it.
                slack = runner.slack() if due and dispatcher.alone and took < QUICK_DRAW_SECS * steps else 0
                first_bad_step = live.first_bad_step_so_far() if slack >= steps else live.first_bad_step
                outputs = LazyOutputs(
                    values,
                    steps=range(step + 1, upto + 1),
                    stacked=steps > 1,
                    extras={"first_bad_step": first_bad_step},
                    waiting=waiting,
                )
                if listens:
                    runner.collect(outputs)
                if due and slack >= steps:
                    runner.hold(outputs, slack)
                    held = values["loss"]
                elif due:
                    began = perf_counter()
                    dispatcher.prepare(last_step - upto)
                    drawing += perf_counter() - began
                    with spent.on(HOOKS):
                        runner.after(outputs)
                        decisions.settle(run)
                    held, written = None, True
            if held is not None and (held.is_ready() or upto + longest > runner.held_until):
                with spent.on(HOOKS):
                    runner.release()
                held, written = None, True
        if held is not None:
            with spent.on(HOOKS):
                runner.release()
        return reason if run.stop_reason is None or reason == INTERRUPTED else run.stop_reason
    finally:
        spent.charge(INPUT, drawing)


#: Drawing a batch takes no longer where the device, not the input, sets the pace.
QUICK_DRAW_SECS = 0.001
INTERRUPTED = "interrupted by the platform"
