"""One `Estimator.evaluate` call."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint import checkpoint_step, latest_checkpoint
from estimator_core._checkpoint.layout import checkpoint_path, checkpoints_dir, committed_steps
from estimator_core._inputs import BatchSource, open_input
from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.batches import Batches
from estimator_core._loop.engine import Engine
from estimator_core._loop.evaluate import evaluate_loop
from estimator_core._loop.feed import feed
from estimator_core._loop.history import History
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.hook_order import in_order
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.live import LiveState
from estimator_core._loop.run import LoopRun
from estimator_core._loop.shared_feed import SharedFeed
from estimator_core._loop.time_spent import EVALUATION
from estimator_core._loop.total import Total, prepared
from estimator_core._summaries import NO_SUMMARIES, append_eval_metrics, open_summary_writer, read_eval_metrics
from estimator_core.errors import InputError, PreemptedError
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class EvaluateCall:
    """The arguments of an evaluation, checked, and what the Estimator lends it.

    Attributes:
        state: gives the state to evaluate, once the first batch is known.
    """

    estimator: Any
    engine: Engine
    eval_dir: Path
    input_fn: Callable[..., Any]
    steps: int | None
    hooks: Sequence[Any]
    name: str | None
    state: Callable[[Any], Any]
    checkpoint_path: str | None
    history: History
    plugins: Any

    def execute(self) -> dict[str, Any]:
        """Evaluates and writes the results."""
        engine, config = self.engine, self.engine.config
        with engine.peers.guard(), contextlib.ExitStack() as cleanup:
            writes = engine.peers.is_chief and (config.is_chief or config.task_type == "evaluator")
            if engine.time_spent is not None:
                cleanup.enter_context(engine.time_spent.on(EVALUATION))
            summaries = open_summary_writer(self.eval_dir) if writes else NO_SUMMARIES
            engine.event_files.append(summaries)
            if not engine.training:
                cleanup.callback(engine.close_event_files)
            run = LoopRun(
                mode=ModeKeys.EVAL,
                estimator=self.estimator,
                config=config,
                params=engine.model_fn.params,
                model_dir=self.eval_dir,
                summaries=summaries,
                live=LiveState(),
                name=self.name,
                last_step=self.steps,
            )
            calls = HookCalls(in_order([*self.plugins.run_hooks(run), *self.hooks]), run)
            source = open_input(
                run.transformed(self.input_fn),
                mode=ModeKeys.EVAL,
                params=engine.model_fn.params,
                config=config,
                input_context=engine.input_context,
            )
            fed = feed(source, engine.placement, config.prefetch, engine.peers)
            cleanup.callback(fed.close)
            if isinstance(fed, SharedFeed):
                engine.decisions.follow(fed)
            batches = engine.batches(fed, ModeKeys.EVAL, run.time_spent)
            cleanup.callback(batches.close)
            schedule = HookSchedule(
                calls, run, batches=batches, account=run.time_spent, agreement=NOBODY_ASKS, alone_at_wake=True
            )
            error: BaseException | None = None
            self.plugins.run_start(run)
            try:
                calls.begin()
                metrics = self._evaluate(run, calls, schedule, source, batches)
            except BaseException as raised:
                error, run.failed, run.interrupted = raised, True, isinstance(raised, PreemptedError)
                raise
            finally:
                try:
                    schedule.end(error)
                finally:
                    if error is not None:
                        self.plugins.run_end(run, error)
            self._report(run, metrics)
            if writes:
                self._write(run, metrics)
            self.history.add_evaluation(self.name, metrics)
            self.plugins.evaluation_finished(run, metrics)
            self.plugins.run_end(run, None)
        return metrics

    def _evaluate(
        self, run: LoopRun, calls: HookCalls, schedule: HookSchedule, source: BatchSource, batches: Batches
    ) -> dict[str, Any]:
        engine = self.engine
        first = batches.first()
        if self.steps is None and source.endless:
            raise InputError(
                "evaluate: this input never ends (num_epochs=None), so an evaluation of all of it would not either. "
                "Give the input num_epochs=1, or the evaluation a number of steps."
            )
        with engine.placement.context():
            if first is not None:
                state = self.state(first)
                run.live = LiveState(state=state, step=int(np.asarray(state.clock)[0]))
            step, run.step = run.live.step, 0
            self._check_there_is_something(run, first)
            assert first is not None, "checked above"
            engine.decisions.break_off(run)
            run.batch, run.batch_size = first, first.size
            total = Total(run, prepared(run, calls, engine.eval_step, first))
            schedule.start()
            metrics = evaluate_loop(run, batches, total, schedule, engine.decisions, steps=self.steps)
        return dict(sorted({**metrics, "global_step": step}.items()))

    def _check_there_is_something(self, run: LoopRun, first: Any) -> None:
        which = "" if self.name is None else f" {self.name!r}"
        if run.stop_reason is not None:
            raise InputError(
                f"evaluate{which}: a hook asked for a stop before the first batch ({run.stop_reason}), so there is "
                "nothing to compute metrics from."
            )
        if first is None:
            raise InputError(
                f"evaluate{which}: the input is empty, so there is nothing to evaluate. Check what input_fn returns in "
                "mode 'eval'."
            )

    def _report(self, run: LoopRun, metrics: dict[str, Any]) -> None:
        step = metrics["global_step"]
        _log.info(
            "Saving dict for global step %d%s: %s",
            step,
            "" if self.name is None else f" ({self.name})",
            ", ".join(f"{name} = {value}" for name, value in metrics.items()),
        )

    def _write(self, run: LoopRun, metrics: dict[str, Any]) -> None:
        step = metrics["global_step"]
        values = {name: value for name, value in metrics.items() if name != "global_step"}
        if (self.engine.training or self.engine.replaces_results) and self._newest_recorded() >= step:
            # A killed run had got further than the checkpoint this one goes on from.
            open_summary_writer(self.eval_dir, resume_step=step - 1)
        for name, value in values.items():
            if np.ndim(value) == 0:
                run.summaries.scalar(name, float(value), step)
            else:
                _log.info(
                    "Metric %s has shape %s; TensorBoard shows scalars only, see %s.",
                    name,
                    np.shape(value),
                    self.eval_dir / "metrics.jsonl",
                )
        path = self._checkpoint_of(step)
        if path is not None:
            run.summaries.text("checkpoint_path", path, step)
        run.summaries.flush()
        between = self.engine.training and path is None
        append_eval_metrics(self.eval_dir, step, values, path, between_checkpoints=between)
        if self.engine.training:
            self.engine.newest_results[self.eval_dir] = step

    def _newest_recorded(self) -> int:
        """The newest step with a result; read once a training run, which alone adds to them."""
        known = self.engine.newest_results.get(self.eval_dir)
        return max(read_eval_metrics(self.eval_dir), default=-1) if known is None else known

    def _checkpoint_of(self, step: int) -> str | None:
        """The checkpoint that holds the state evaluated; an evaluation inside training may come before its commit."""
        if self.checkpoint_path is not None:
            return self.checkpoint_path
        model_dir = str(self.engine.config.model_dir)
        if self.engine.saving_step == step:
            return checkpoint_path(model_dir, step)
        if step not in committed_steps(checkpoints_dir(model_dir)):
            return None
        newest = latest_checkpoint(model_dir)
        return newest if newest is not None and checkpoint_step(newest) == step else None
