"""The parts that an evaluation and predictions have in common: their input, their hooks, and their end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from estimator_core._inputs import BatchSource, InputFn
from estimator_core._loop.agreement import hooks_of
from estimator_core._loop.batches import feed
from estimator_core._loop.context import RunContext
from estimator_core._loop.hook_calls import HookCalls, in_order
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.resuming import input_context
from estimator_core._loop.run import LoopRun
from estimator_core._loop.steps_per_dispatch import GroupTrials, TunedBatches
from estimator_core.errors import PreemptedError
from estimator_core.hooks import Hook


class InferenceLoop(NamedTuple):
    """The parts of an evaluation or of predictions while it runs.

    Attributes:
        source: the input.
        batches: its batches, one by one or in groups.
        calls: the hooks, which have begun.
        schedule: the schedule, which decides when hooks receive control.
    """

    source: BatchSource
    batches: TunedBatches
    calls: HookCalls
    schedule: HookSchedule


@contextlib.contextmanager
def inference_loop(
    context: RunContext,
    run: LoopRun,
    input_fn: InputFn,
    hooks: Sequence[Hook],
    trials: Callable[[], GroupTrials],
    cleanup: contextlib.ExitStack,
) -> Generator[InferenceLoop]:
    """Opens the input and begins the hooks. At the end of the block, `end` of the hooks always runs.

    Several processes run batch by batch, because their decisions are sent with the batches.

    Args:
        context: the context of the call.
        run: the run that hooks see.
        input_fn: the function that returns batches.
        hooks: the hooks of the call.
        trials: a function that returns the trials of the program, after hooks have declared what they fetch.
        cleanup: the stack at whose end plugins learn that the run has ended.
    """
    config, devices, placement = context.config, context.devices, context.devices.placement
    source = run.open(input_fn, input_context(devices))
    with contextlib.ExitStack() as inputs:
        fed = feed(source, devices, config.prefetch, context.plugins)
        inputs.callback(fed.close)
        context.decisions.follow(fed)
        asked = 1 if placement.spans_processes else config.batches_per_dispatch
        batches = TunedBatches(fed, placement.stack, run.time_spent, asked, trials)
        inputs.callback(batches.close)
        calls = HookCalls(in_order([*context.plugins.run_hooks(run), *hooks]), run, context.busy)
        agreement = hooks_of(devices, context.plugins)
        schedule = HookSchedule(
            calls, run, batches=batches, account=run.time_spent, agreement=agreement, alone_at_wake=True
        )
        agreement.watch(fed, schedule.overdue, run)
        error: BaseException | None = None

        def ended(kind: object, raised: BaseException | None, trace: object) -> None:
            # A caller that wants no more predictions closes them, which is not a failure.
            told = None if isinstance(raised, GeneratorExit) else raised
            run.failed = told is not None
            context.plugins.run_end(run, told if error is None else error)

        context.plugins.run_start(run)
        cleanup.push(ended)
        try:
            calls.begin()
            yield InferenceLoop(source, batches, calls, schedule)
        except GeneratorExit:
            raise
        except BaseException as raised:
            error, run.failed, run.interrupted = raised, True, isinstance(raised, PreemptedError)
            raise
        finally:
            schedule.end(error)
