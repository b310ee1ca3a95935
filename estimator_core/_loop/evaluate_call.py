"""One `Estimator.evaluate` call."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from estimator_core._cluster.together import ending_together
from estimator_core._inputs import Batch, BatchSource, InputFn, open_input
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.eval_results import report, write_results
from estimator_core._loop.evaluate import evaluate_loop
from estimator_core._loop.feed import Feed, feed
from estimator_core._loop.groups import Groups
from estimator_core._loop.history import History
from estimator_core._loop.hook_runner import HookRunner
from estimator_core._loop.inference import InferenceStates
from estimator_core._loop.input_part import input_context
from estimator_core._loop.programs import Programs
from estimator_core._loop.run import LoopRun
from estimator_core._loop.shared_feed import SharedFeed
from estimator_core._loop.time_spent import EVALUATION
from estimator_core._summaries import NO_SUMMARIES
from estimator_core.errors import InputError, PreemptedError
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class EvaluateCall:
    """The arguments of an evaluation, checked, and what the Estimator lends it.

    Attributes:
        context: of the call, still without its event file.
        programs: of the Estimator.
        states: gives the state to evaluate, once the first batch is known.
        history: written to.
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
            PreemptedError: broken off, because the platform wants a stop.
        """
        config, processes = self.context.config, self.context.devices.processes
        writes = processes.index == 0 and (config.is_chief or config.task_type == "evaluator")
        with ending_together(processes), contextlib.ExitStack() as cleanup:
            cleanup.enter_context(self.context.account.on(EVALUATION))
            if self.context.outer is None:
                cleanup.callback(self.context.results.close)
            file = self.context.results.event_file(self.context.directory) if writes else NO_SUMMARIES
            context = replace(self.context, summaries=file)
            run = _run_of(context, self.steps)
            runner = HookRunner([*context.plugins.run_hooks(run), *self.hooks], run)
            metrics = self._run_to_end(context, run, runner, cleanup)
            report(context, metrics)
            if writes:
                write_results(context, metrics)
            self.history.add_evaluation(context.name, metrics)
            context.plugins.evaluation_finished(run, metrics)
            context.plugins.run_end(run, None)
        return metrics

    def _run_to_end(
        self, context: RunContext, run: LoopRun, runner: HookRunner, cleanup: contextlib.ExitStack
    ) -> dict[str, Any]:
        """Begin, loop, end; `end` whatever happens."""
        source = open_input(
            run.transformed(self.input_fn),
            mode=ModeKeys.EVAL,
            params=context.params,
            config=context.config,
            input_context=input_context(context.devices),
        )
        batches = feed(source, context.devices.placement, context.config.prefetch, context.devices.processes)
        cleanup.callback(batches.close)
        if isinstance(batches, SharedFeed):
            context.decisions.follow(batches)
        error: BaseException | None = None
        context.plugins.run_start(run)
        try:
            runner.begin()
            return self._evaluate(context, run, runner, source, batches)
        except BaseException as raised:
            error, run.failed, run.interrupted = raised, True, isinstance(raised, PreemptedError)
            raise
        finally:
            try:
                runner.end(error)
            finally:
                if error is not None:
                    context.plugins.run_end(run, error)

    def _evaluate(
        self, context: RunContext, run: LoopRun, runner: HookRunner, source: BatchSource, batches: Feed | SharedFeed
    ) -> dict[str, Any]:
        first: Batch | None = next(batches, None)
        if self.steps is None and source.endless:
            raise InputError(
                "evaluate: this input never ends (num_epochs=None), so an evaluation of all of it would not either. "
                "Give the input num_epochs=1, or the evaluation a number of steps."
            )
        devices = context.devices
        with devices.placement.context():
            if first is not None:
                state = self.states.get(context, first, self.checkpoint_path)
                run.live = DeviceState(state=state, step=int(np.asarray(state.clock)[0]))
            step = run.live.step
            groups = groups_of(context, self.programs, first, batches)
            try:
                metrics = evaluate_loop(
                    run,
                    runner,
                    groups,
                    partial(self.programs.eval_step, devices),
                    steps=self.steps,
                    asked_to_stop=lambda: context.decisions.requested,
                )
            finally:
                groups.close()
        return dict(sorted({**metrics, "global_step": step}.items()))


def groups_of(context: RunContext, programs: Programs, first: Batch | None, rest: Feed | SharedFeed) -> Groups:
    """The batches of an evaluation or of predictions, one by one or in groups; several processes go batch by batch,
    since they decide what to do with their batches.
    """
    placement = context.devices.placement
    asked = 1 if placement.spans_processes else context.config.batches_per_dispatch
    trials = programs.group_trials(context.devices, context.mode)
    return Groups(first, rest, placement.stack, asked=asked, trials=trials)


def _run_of(context: RunContext, steps: int | None) -> LoopRun:
    """What hooks see of the evaluation."""
    run = LoopRun(
        mode=ModeKeys.EVAL,
        estimator=context.estimator,
        config=context.config,
        params=context.params,
        model_dir=context.directory,
        summaries=context.summaries,
        live=DeviceState(),
        name=context.name,
        last_step=steps,
    )
    run.context = context
    return run
