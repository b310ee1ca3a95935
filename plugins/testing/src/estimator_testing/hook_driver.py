"""Drives hooks step by step without a model, with outputs of your choice.

This file alone follows the machinery of the training loop: the loop's own hook runner decides when a hook is called, so
that a hook which passes here is called alike in a real run. Who changes how the loop runs hooks changes `_dispatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_core.hooks import Hook
from estimator_testing._core import HookRunner, LazyOutputs
from estimator_testing.fake_run import FakeRun


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
) -> FakeRun:
    """Runs hooks as the training loop does, by its own hook runner, without a model.

    Args:
        hooks: the hooks, in order.
        steps: how many steps to make.
        run: the run they see; None: a new one that starts at step 0.
        outputs: value of each output at a global step; None: a falling "loss".
        resume: states to give back, one a hook, as when an interrupted run is resumed.
        steps_per_dispatch: most steps between two moments at which hooks can act; fewer where a hook asks for a step.
        late: call `after_step` as late as the hooks' `slack` allows.
        fail_at: the global step at which the loop itself raises a RuntimeError.

    Raises:
        RuntimeError: at `fail_at`, after `end` of all hooks.
    """
    run = run or FakeRun()
    compute = dict(outputs) if outputs is not None else {"loss": lambda step: np.float32(1.0 / (1 + step))}
    run.output_names, run.output_kinds = frozenset(compute), dict.fromkeys(compute, "scalar")
    run.first_step, run.last_step, run.resumed = run.step, run.step + steps, bool(resume)
    runner = HookRunner(hooks, run)
    error: BaseException | None = None
    try:
        runner.begin()
        for hook, state in zip(hooks, resume, strict=False):
            hook.restore(state)
        runner.after_create()
        while run.step < run.last_step and run.stop_reason is None:
            _dispatch(runner, run, compute, steps_per_dispatch, late, fail_at)
    except BaseException as raised:
        error, run.failed = raised, True
        raise
    finally:
        runner.end(error)
    return run


def _dispatch(
    runner: HookRunner,
    run: FakeRun,
    compute: Mapping[str, Callable[[int], Any]],
    most: int,
    late: bool,
    fail_at: int | None,
) -> None:
    runner.look_at_clock()
    upto = int(min(run.last_step or 0, run.step + most, runner.wake, runner.held_until))
    runner.before(upto)
    if fail_at is not None and fail_at <= upto:
        raise RuntimeError(f"the loop fails at step {fail_at}")
    out = _outputs(range(run.step + 1, upto + 1), compute)
    run.step = upto
    if runner.listens:
        runner.collect(out)
    if runner.wake <= upto:
        slack = runner.slack() if late else 0
        if slack > 0:
            runner.hold(out, slack)
        else:
            runner.after(out)
    elif upto >= runner.held_until:
        runner.release()


def _outputs(steps: range, compute: Mapping[str, Callable[[int], Any]]) -> LazyOutputs:
    """Outputs of a dispatch as the loop hands them to hooks; nobody can write to their arrays."""
    values = {name: np.stack([np.asarray(value(step)) for step in steps]) for name, value in compute.items()}
    for value in values.values():
        value.flags.writeable = False
    return LazyOutputs(values, steps=steps, stacked=True)
