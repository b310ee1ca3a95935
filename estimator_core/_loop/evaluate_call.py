"""One `Estimator.evaluate` call."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.history import History
from estimator_core._inputs import Batch, InputFn
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.eval_results import report, write_results
from estimator_core._loop.eval_total import EvalTotal, prepared
from estimator_core._loop.evaluate import evaluate_loop
from estimator_core._loop.inference_loop import InferenceLoop, inference_loop
from estimator_core._loop.inference_state import InferenceStates
from estimator_core._loop.programs import Programs
from estimator_core._loop.result_log import relative_to
from estimator_core._loop.run import LoopRun
from estimator_core._loop.time_spent import EVALUATION
from estimator_core._summaries import NO_SUMMARIES
from estimator_core.errors import HookError, InputError
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
        with (
            self.context.together("evaluate", self.hooks, **given),
            self.context.account.on(EVALUATION),
            contextlib.ExitStack() as cleanup,
            contextlib.ExitStack() as files,
        ):
            if self.context.outer is None:
                self.context.plugins.open_call(config)
                files.callback(self.context.results.close)  # before plugins hear of the end
            file = self.context.results.event_file(self.context.directory) if writes else NO_SUMMARIES
            context = replace(self.context, summaries=file)
            run = LoopRun(context, DeviceState(), last_step=self.steps)
            trials = partial(self.programs.group_trials, context.devices, context.mode, run.fetches)
            with inference_loop(context, run, self.input_fn, self.hooks, trials, cleanup) as loop:
                metrics = self._evaluate(context, run, loop)
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

    def _evaluate(self, context: RunContext, run: LoopRun, loop: InferenceLoop) -> dict[str, Any]:
        source, batches, calls, schedule = loop
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
