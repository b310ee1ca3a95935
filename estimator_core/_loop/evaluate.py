"""The evaluation loop."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.groups import Groups
from estimator_core._loop.hook_runner import HookRunner
from estimator_core._loop.outputs import LazyOutputs, check_fetches
from estimator_core._loop.run import LoopRun
from estimator_core._metrics.merging import compute_metrics, merge_metrics
from estimator_core._step.eval_step import EvalStep
from estimator_core.errors import InputError, PreemptedError

_log = logging.getLogger("estimator_core")


def evaluate_loop(
    run: LoopRun,
    runner: HookRunner,
    source: Groups,
    eval_steps: Callable[[frozenset[str]], EvalStep],
    *,
    steps: int | None,
    asked_to_stop: Callable[[], bool],
) -> dict[str, Any]:
    """Evaluates up to `steps` batches (None: the whole input) and computes the metrics once, at the end.

    Hooks count batches here: `next_step` and `after_step` speak of the number of batches done.

    Args:
        run: what the hooks see.
        runner: calls the hooks.
        source: gives the batches, several at a time where neither hooks nor host metrics want each by itself.
        eval_steps: gives the program for a set of fetched outputs.
        steps: number of batches.
        asked_to_stop: looked at before each batch is used.

    Raises:
        InputError: when the input is empty.
        PreemptedError: broken off, because the platform wants a stop.
    """
    accumulated: dict[str, Any] | None = None
    host_metrics: dict[str, Any] = {}
    done = 0
    last = math.inf if steps is None else steps
    run.step = 0
    eval_step: EvalStep | None = None
    while done < last and run.stop_reason is None:
        alone = eval_step is None or runner.listens or bool(host_metrics)
        dispatch = source.draw(1 if alone else min(last, runner.wake - 1) - done)
        if dispatch is None:
            break
        if asked_to_stop():
            raise PreemptedError(f"The evaluation was broken off after {done} batches.")
        batch = dispatch.last
        run.batch, run.batch_size = batch, batch.size
        if eval_step is None:
            eval_step = _prepared(run, runner, eval_steps, batch)
        if runner.watches_clock:
            runner.look_at_clock()
        upto = done + dispatch.steps
        due = dispatch.steps == 1 and runner.wake <= upto
        if due:
            runner.before(upto)
        data = (run.live.ready, dispatch.features, dispatch.labels, dispatch.weights)
        outputs: LazyOutputs | None = None
        if dispatch.steps > 1:
            accumulated = eval_step.several(accumulated, *data)
        else:
            result = eval_step(accumulated, *data)
            accumulated = result.accumulated
            host_metrics = merge_metrics(host_metrics, result.host_metrics) if host_metrics else result.host_metrics
            outputs = LazyOutputs(result.outputs, steps=range(upto, upto + 1), stacked=False)
        _log_progress(run, done, upto, steps)
        run.step = done = upto
        if outputs is not None and (due or runner.listens):
            if runner.listens:
                runner.collect(outputs)
            if due:
                runner.after(outputs)
        if not alone and source.due(batch) and not eval_step.has_effects(*data):
            source.try_out(min(last, runner.wake - 1) - done, *_ways(eval_step, run.live.ready, accumulated))
    if accumulated is None and run.stop_reason is not None:
        raise InputError(
            f"evaluate{'' if run.name is None else f' {run.name!r}'}: a hook asked for a stop before the first batch "
            f"({run.stop_reason}), so there is nothing to compute metrics from."
        )
    if accumulated is None:
        raise InputError(
            f"evaluate{'' if run.name is None else f' {run.name!r}'}: the input is empty, so there is nothing to "
            "evaluate. Check what input_fn returns in mode 'eval'."
        )
    return compute_metrics({**accumulated, **host_metrics})


def _prepared(
    run: LoopRun, runner: HookRunner, eval_steps: Callable[[frozenset[str]], EvalStep], batch: Any
) -> EvalStep:
    """The program that gives what the hooks fetch, those of the EstimatorSpec included; all hooks are created."""
    data = (run.live.ready, batch.features, batch.labels, batch.weights)
    eval_step = eval_steps(frozenset(run.fetches))
    eval_step.prepare(*data)
    runner.hooks.extend(hook for hook in eval_step.hooks if not any(hook is known for known in runner.hooks))
    runner.begin()
    run.output_kinds = eval_step.output_kinds
    run.output_names = frozenset(eval_step.output_kinds)
    wanted = run.seal_fetches()
    check_fetches(wanted, run.output_names)
    if wanted != eval_step.fetches:
        eval_step = eval_steps(wanted)
        eval_step.prepare(*data)
    runner.after_create()
    return eval_step


def _ways(eval_step: EvalStep, state: Any, begin: Any) -> tuple[Callable[[list[Any]], Any], Callable[[Dispatch], Any]]:
    """How to evaluate further batches one by one, and in one dispatch, when `begin` has been accumulated."""

    def single(batches: list[Any]) -> Any:
        accumulated = begin
        for batch in batches:
            accumulated = eval_step(accumulated, state, batch.features, batch.labels, batch.weights).accumulated
        return accumulated

    def grouped(dispatch: Dispatch) -> Any:
        return eval_step.several(begin, state, dispatch.features, dispatch.labels, dispatch.weights)

    return single, grouped


def _log_progress(run: LoopRun, before: int, done: int, steps: int | None) -> None:
    if steps is not None and (steps < 20 or done // (steps // 10) > before // (steps // 10)):
        _log.info("Evaluation [%d/%d]%s", done, steps, "" if run.name is None else f" ({run.name})")
