"""Drives hooks step by step without a model, with outputs of your choice.

Only this file follows the implementation of the training loop. The hook runner of the loop decides when a hook is
called, so a hook that passes here is called in the same way in a real run. A change of that implementation also changes
`_dispatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from estimator_core.errors import HookError
from estimator_core.hooks import CheckpointPolicy, Hook
from estimator_core.inputs import Batch
from estimator_core.modes import ModeKeys
from estimator_testing._core import NOBODY_ASKS, Dispatch, HookCalls, HookSchedule, TimeSpent, in_order
from estimator_testing.fake_run import FakeRun
from estimator_testing.faults import Unreadable
from estimator_testing.step_clock import StepClock


def drive(
    hooks: Sequence[Hook],
    *,
    steps: int,
    run: FakeRun | None = None,
    outputs: Mapping[str, Callable[[int], Any]] | None = None,
    resume: Sequence[Mapping[str, Any]] = (),
    steps_per_dispatch: int = 1,
    late: bool = False,
    fail_at: int | None = None,
    saved: dict[int, dict[str, dict[str, Any]]] | None = None,
    clock: StepClock | None = None,
) -> FakeRun:
    """Runs hooks as the training loop does, with the loop's own schedule of hooks, without a model.

    Args:
        hooks: the hooks. They are called in this order, except where their `place` changes it.
        steps: the number of steps.
        run: the run that the hooks see. None: a new one that starts at step 0.
        outputs: the functions from the global step to the value of each output. None: a falling "loss".
        resume: the states to restore, one for each hook, as in a resumed run.
        steps_per_dispatch: the most steps between two calls of hooks. There are fewer if a hook requests a step.
        late: whether to call `after_step` as late as `Wake.within` of the hooks allows.
        fail_at: the global step at which the loop itself raises a RuntimeError.
        saved: a mapping that receives the states of the hooks by step and name after every dispatch, as if a run saves.
        clock: the time that the hooks see. Each step advances it. None: the time of the machine.

    Raises:
        HookError: a hook is a checkpoint policy.
        RuntimeError: at `fail_at`, after `end` of all hooks.
    """
    for hook in hooks:
        if isinstance(hook, CheckpointPolicy):
            raise HookError(
                f"drive: {type(hook).__name__} is a checkpoint policy, and drive saves nothing. Test a policy with "
                "CheckpointPolicySuite."
            )
    run = run or FakeRun()
    compute = dict(outputs) if outputs is not None else {"loss": lambda step: np.float32(1.0 / (1 + step))}
    run.output_names, run.output_kinds = frozenset(compute), dict.fromkeys(compute, "scalar")
    end = run.step + steps
    last = end if run.mode == ModeKeys.TRAIN else run.last_step  # other calls know it if they were called with steps
    run.first_step, run.last_step, run.resumed = run.step, last, bool(resume)
    calls = HookCalls(in_order(hooks), run)
    schedule = HookSchedule(
        calls,
        run,
        batches=_Batches(steps_per_dispatch, quick=late),
        account=TimeSpent(),
        agreement=NOBODY_ASKS,
        alone_at_wake=run.mode != ModeKeys.TRAIN,
        is_there=lambda values: False,
    )
    error: BaseException | None = None
    with nullcontext() if clock is None else clock.shown():
        try:
            calls.begin()
            for hook, state in zip(hooks, resume, strict=False):
                hook.restore(state)
            schedule.start()
            while run.step < end and run.stop_reason is None:
                most = min(steps_per_dispatch, end - run.step)
                _dispatch(schedule, run, compute, most, fail_at, clock)
                if saved is not None:
                    saved[run.step] = schedule.states()
            schedule.catch_up()
        except BaseException as raised:
            error, run.failed = raised, True
            raise
        finally:
            schedule.end(error)
    return run


class _Batches:
    """The batches for the schedule. Slow batches prevent late calls of hooks."""

    alone = True

    def __init__(self, k: int, *, quick: bool) -> None:
        self.k, self.quick = k, quick

    def prepare(self, room: float) -> None:
        """Does nothing, because there is nothing to draw."""


def _dispatch(
    schedule: HookSchedule,
    run: FakeRun,
    compute: Mapping[str, Callable[[int], Any]],
    most: int,
    fail_at: int | None,
    clock: StepClock | None,
) -> None:
    upto = run.step + int(max(1, min(most, schedule.room())))  # an evaluation may leave no room before a wake
    steps = range(run.step + 1, upto + 1)
    values = _outputs(steps, compute)
    dispatch = Dispatch(None, None, None, len(steps), cast(Batch, SimpleNamespace(size=run.batch_size)))
    shown = run.batch
    schedule.before(dispatch)
    run.batch = shown  # the value that the test has set
    if fail_at is not None and fail_at <= upto:
        raise RuntimeError(f"the loop fails at step {fail_at}")
    if clock is not None:
        clock.tick(len(steps))
    run.step = upto
    schedule.after(dispatch, values)


def _outputs(steps: range, compute: Mapping[str, Callable[[int], Any]]) -> dict[str, Any]:
    """Returns the outputs of a dispatch as the loop passes them to hooks, with read-only arrays."""
    return {name: _stacked([value(step) for step in steps]) for name, value in compute.items()}


def _stacked(row: list[Any]) -> Any:
    unreadable = [value for value in row if isinstance(value, Unreadable)]
    if unreadable:
        return unreadable[0]
    stacked = np.stack([np.asarray(value) for value in row]) if len(row) > 1 else np.array(row[0])
    stacked.flags.writeable = False
    return stacked
