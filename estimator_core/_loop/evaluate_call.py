"""One `Estimator.evaluate` call."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.history import History
from estimator_core._inputs import Batch, BatchSource, InputFn
from estimator_core._loop.agreement import hooks_of
from estimator_core._loop.batches import Batches, Feed, feed
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.eval_results import report, write_results
from estimator_core._loop.eval_total import EvalTotal, prepared
from estimator_core._loop.evaluate import evaluate_loop
from estimator_core._loop.hook_calls import HookCalls, in_order
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.inference_state import InferenceStates
from estimator_core._loop.programs import Programs
from estimator_core._loop.result_log import relative_to
from estimator_core._loop.resuming import input_context
from estimator_core._loop.run import LoopRun
from estimator_core._loop.shared_feed import SharedFeed
from estimator_core._loop.steps_per_dispatch import GroupTrials, GroupTuner
from estimator_core._loop.time_spent import EVALUATION
from estimator_core._summaries import NO_SUMMARIES
from estimator_core.errors import HookError, InputError, PreemptedError
from estimator_core.hooks import Hook

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class EvaluateCall:
    """The checked arguments of an evaluation, and the parts of the Estimator that it uses.

    Attributes:
        context: the context of the call, still without its event file.
        programs: the programs of the Estimator.
        states: the provider of the state to evaluate, after the first batch is known.
        input_fn: the function that returns batches, with host transforms applied.
        steps: the number of batches to evaluate. None: the whole input.
        hooks: the hooks of the call.
        checkpoint_path: the checkpoint to evaluate. None: the newest state.
        history: the history to which the result is added.
    """

    context: RunContext
    programs: Programs
    states: InferenceStates
    input_fn: InputFn
    steps: int | None
    hooks: Sequence[Hook]
    checkpoint_path: str | None
    history: History

    def execute(self) -> dict[str, Any]:
        """Evaluates and writes the results.

        Raises:
            InputError: the input is empty, or never ends.
            PreemptedError: the evaluation was interrupted, because the platform has requested a stop.
        """
        config = self.context.config
        writes = self.context.devices.processes.index == 0 and (config.is_chief or config.task_type == "evaluator")
        given = {
            "name": self.context.name,
            "steps": self.steps,
            "checkpoint_path": relative_to(self.context.estimator.model_dir, self.checkpoint_path),
        }
        with self.context.together("evaluate", self.hooks, **given), contextlib.ExitStack() as cleanup:
            cleanup.enter_context(self.context.account.on(EVALUATION))
            if self.context.outer is None:
                self.context.plugins.open_call(config)
                cleanup.callback(self.context.results.close)
            file = self.context.results.event_file(self.context.directory) if writes else NO_SUMMARIES
            context = replace(self.context, summaries=file)
            run = _run_of(context, self.steps)
            calls = HookCalls(in_order([*context.plugins.run_hooks(run), *self.hooks]), run, context.busy)
            with contextlib.ExitStack() as inputs:
                metrics = self._run_to_end(context, run, calls, inputs, cleanup)
            report(context, metrics)
            if replaced := sorted(metrics.keys() & run.results):
                raise HookError(
                    f"A hook adds the results {', '.join(replaced)}, which are metrics of the model: use other names."
                )
            metrics = {**metrics, **run.results}
            if writes:
                write_results(context, metrics)
            self.history.add_evaluation(context.name, metrics)
            context.plugins.evaluation_finished(run, metrics)
        return metrics

    def _run_to_end(
        self,
        context: RunContext,
        run: LoopRun,
        calls: HookCalls,
        inputs: contextlib.ExitStack,
        cleanup: contextlib.ExitStack,
    ) -> dict[str, Any]:
        """Begins, loops and ends. `end` always runs. `inputs` closes the input, and `cleanup` tells plugins."""
        source = run.open(self.input_fn, input_context(context.devices))
        fed = feed(source, context.devices.placement, context.config.prefetch, context.devices.processes)
        inputs.callback(fed.close)
        if isinstance(fed, SharedFeed):
            context.decisions.follow(fed)
        trials = partial(self.programs.group_trials, context.devices, context.mode, run.fetches)
        batches = batches_of(context, fed, run, trials)
        inputs.callback(batches.close)
        agreement = hooks_of(context.devices)
        schedule = HookSchedule(
            calls, run, batches=batches, account=run.time_spent, agreement=agreement, alone_at_wake=True
        )
        agreement.watch(fed, schedule.overdue, run)
        error: BaseException | None = None

        def ended(kind: object, raised: BaseException | None, trace: object) -> None:
            run.failed = raised is not None
            context.plugins.run_end(run, raised if error is None else error)

        context.plugins.run_start(run)
        cleanup.push(ended)
        try:
            calls.begin()
            return self._evaluate(context, run, calls, schedule, source, batches)
        except BaseException as raised:
            error, run.failed, run.interrupted = raised, True, isinstance(raised, PreemptedError)
            raise
        finally:
            schedule.end(error)

    def _evaluate(
        self,
        context: RunContext,
        run: LoopRun,
        calls: HookCalls,
        schedule: HookSchedule,
        source: BatchSource,
        batches: Batches,
    ) -> dict[str, Any]:
        first: Batch | None = batches.first()
        if self.steps is None and source.endless:
            raise InputError(
                "evaluate: this input never ends (num_epochs=None), so the evaluation would not end either. "
                "Give the input num_epochs=1, or the evaluation a number of steps."
            )
        first = _checked(run, first)
        devices = context.devices
        with devices.placement.context(), self.states.reading():
            state = self.states.get(context, first, self.checkpoint_path)
            run.live = DeviceState(state=state, step=int(np.asarray(state.clock)[0]))
            step, run.step = run.live.step, 0
            context.decisions.break_off(run)
            run.batch, run.batch_size = first, first.size
            eval_steps = partial(self.programs.eval_step, devices)
            step_of_batch = prepared(run, calls, eval_steps, first, devices.processes, schedule.start)
            total = EvalTotal(run, step_of_batch, grouped=batches.begin(first))
            schedule.agree()
            metrics = evaluate_loop(run, batches, total, schedule, context.decisions, steps=self.steps)
        return dict(sorted({**metrics, "global_step": step}.items()))


def batches_of(
    context: RunContext, source: Feed | SharedFeed, run: LoopRun, trials: Callable[[], GroupTrials]
) -> Batches:
    """Returns the batches of an evaluation or of predictions, one by one or in groups.

    Several processes run batch by batch, because their decisions are sent with the batches.

    Args:
        context: the context of the call.
        source: the iterator of batches.
        run: the run that accounts for the time of drawing.
        trials: a function that returns the trials of the program, after hooks have declared what they fetch.
    """
    placement = context.devices.placement
    asked = 1 if placement.spans_processes else context.config.batches_per_dispatch
    return Batches(source, placement.stack, run.time_spent, tuner=GroupTuner(asked, trials))


def _checked(run: LoopRun, first: Batch | None) -> Batch:
    """Returns the first batch.

    Raises:
        InputError: there is no batch, or a hook requested a stop before it.
    """
    which = "" if run.name is None else f" {run.name!r}"
    if run.stop_reason is not None:
        raise InputError(
            f"evaluate{which}: a hook requested a stop before the first batch ({run.stop_reason}), so there is nothing "
            "to compute metrics from."
        )
    if first is None:
        raise InputError(
            f"evaluate{which}: the input is empty, so there is nothing to evaluate. Check what input_fn returns in "
            "mode 'eval'."
        )
    return first


def _run_of(context: RunContext, steps: int | None) -> LoopRun:
    """Returns the run of the evaluation that hooks see."""
    run = LoopRun.of(context, DeviceState(), last_step=steps)
    part = input_context(context.devices)
    run.input_part, run.input_rows = (part.input_pipeline_id, part.num_input_pipelines), part.rows
    return run
