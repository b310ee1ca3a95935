"""Evaluations and exports of a training run: those of its checkpoints, and evaluations between them."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator_core._checkpoint.catalog import all_checkpoints, checkpoint_path, checkpoint_step
from estimator_core._cluster.processes import chief_says
from estimator_core._estimator_internals import complete_export, entered, evaluate_within, outermost, publish
from estimator_core._export.contract import Exporter, ExportsInBackground, KnowsEvaluation, RehearsesExports
from estimator_core._hook_members import refuse_misfit
from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.context import RunContext
from estimator_core._loop.run import LoopRun
from estimator_core._plugins.discovery import describe, noting_origin
from estimator_core._summaries import read_eval_metrics
from estimator_core.errors import ArgumentTypeError, CheckpointNotFoundError, ExportError, PreemptedError
from estimator_core.estimator import Estimator
from estimator_core.hooks import Run, SavedCheckpoint
from estimator_core.specs import EvalSpec

_log = logging.getLogger("estimator_core")


class Evaluations:
    """Evaluates every EvalSpec before a save, and runs its exporters after the commit. Also evaluates between saves.

    Attributes:
        metrics: the newest result by EvalSpec name.
        exports: the newest path of each exporter in this call, in order, by EvalSpec name.
    """

    def __init__(
        self, estimator: Estimator, specs: Sequence[EvalSpec], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._estimator = estimator
        self._specs = list(specs)
        self._clock = clock
        # There is one record for checkpoints and one for the time between them, because an evaluation between saves
        # must not prevent the exports of a checkpoint.
        self._started: dict[str | None, float] = {}
        self._started_between: dict[str | None, float] = {}
        #: The last evaluated state of each spec inside the run. `_evaluated` is the last one for a checkpoint.
        self._newest: dict[str | None, tuple[int, int]] = {}
        self._pending: list[EvalSpec] = []
        self._evaluated = (-1, 0)
        self._final_at: dict[str | None, int] = {}
        self.metrics: dict[str | None, dict[str, Any]] = {}
        self.exports: dict[str | None, list[Any]] = {spec.name: [None] * len(spec.exporters) for spec in specs}
        for spec in specs:
            for exporter in spec.exporters:
                for contract in (Exporter, KnowsEvaluation, ExportsInBackground, RehearsesExports):
                    if isinstance(exporter, contract):
                        refuse_misfit(exporter, contract, describe(exporter, "exporter"), ArgumentTypeError)
                if isinstance(exporter, KnowsEvaluation):
                    exporter.used_in(spec.name)

    def evaluate(self, run: Run) -> None:
        """Evaluates the live state, unless the last evaluation at a checkpoint began less than `throttle_secs` ago and
        the run continues.
        """
        self._pending = []  # remains of an interrupted attempt
        ends = run.stop_reason is not None or run.step == run.last_step
        context = replace(_context(run), checkpoint=checkpoint_path(self._estimator.model_dir, run.step))
        self._pending = self._evaluate_all(self._specs, run, context, self._started, always=ends)
        self._evaluated = _state_of(run)

    def next_step(self, step: int) -> int | None:
        """Returns the next step at which an EvalSpec requests an evaluation, with or without a checkpoint."""
        return min(((step // n + 1) * n for spec in self._specs if (n := spec.every_steps)), default=None)

    def evaluate_between(self, run: Run) -> None:
        """Evaluates the EvalSpecs that request this step, unless they were evaluated for a checkpoint."""
        asking = [spec for spec in self._specs if spec.every_steps and run.step % spec.every_steps == 0]
        started = {**self._started_between}
        for name, at in self._started.items():
            started[name] = max(at, started.get(name, at))
        for spec in self._evaluate_all(asking, run, _context(run), started, always=False):
            self._started_between[spec.name] = started[spec.name]

    def _evaluate_all(
        self,
        specs: Sequence[EvalSpec],
        run: Run,
        context: RunContext,
        started: dict[str | None, float],
        *,
        always: bool,
    ) -> list[EvalSpec]:
        """Evaluates the specs that are not throttled. Returns them, and those that were already evaluated.

        Args:
            specs: the specs.
            run: the run.
            context: the context of the run for its evaluations.
            started: the time of the last evaluation of each spec. It is updated.
            always: whether to ignore the throttle.
        """
        evaluated: list[EvalSpec] = []
        for spec in specs:
            if self._newest.get(spec.name) == _state_of(run):
                evaluated.append(spec)
                continue
            now = self._clock()
            since = chief_says(context.devices.processes, "throttle", now - started.get(spec.name, -1e9))
            if since < spec.throttle_secs and not always:
                _log.info(
                    "Skip the evaluation%s at step %d: the last one began %.0f s ago, throttle_secs is %g.",
                    _named(spec),
                    run.step,
                    since,
                    spec.throttle_secs,
                )
                continue
            started[spec.name] = now
            self.evaluate_now(spec, context)
            self._newest[spec.name] = _state_of(run)
            evaluated.append(spec)
        return evaluated

    def after_save(self, run: Run, step: int, checkpoint: SavedCheckpoint) -> bool | None:
        """Runs the exporters of the evaluations that belong to this save."""
        pending, self._pending = self._pending, []
        context = _context(run)
        evaluated_step, version = self._evaluated
        replaced = evaluated_step == step and version != _state_of(run)[1]
        if (replaced or any(spec.exporters for spec in pending)) and context.decisions.requested:
            raise PreemptedError(f"The exports of step {step} were skipped.")
        if replaced:
            # A hook has replaced the weights for the last save. `finish` exports them.
            saved = replace(context, decisions=NOBODY_ASKS, checkpoint=checkpoint_path(self._estimator.model_dir, step))
            for spec in self._specs:
                self.evaluate_now(spec, saved)
            return None
        for spec in pending:
            if spec.exporters:
                self.export(spec, context, checkpoint.path, final=step == run.last_step)
        return None

    def resume(self, run: Run, *, owed: bool) -> None:
        """Runs the exporters of the checkpoint from which the run continues, because a kill may have prevented them.

        If evaluations of its step are owed, takes over the recorded results instead, so that only the others are made.
        """
        path = checkpoint_path(self._estimator.model_dir, run.step)
        for spec in self._specs:
            recorded = read_eval_metrics(self._estimator.eval_dir(spec.name), with_checkpoint=not owed).get(run.step)
            if owed:
                recorded = chief_says(_context(run).devices.processes, "recorded", recorded)
            metrics = {**(recorded or {}), "global_step": run.step}
            if recorded is not None and owed:
                self.metrics[spec.name] = metrics
                self._newest[spec.name], self._started[spec.name] = _state_of(run), self._clock()
            elif recorded is not None:
                self._export(spec, _context(run), path, metrics, final=False)

    def finish(self) -> None:
        """After training, whatever ended it, evaluates the last step and exports it as the final one."""
        path = self._estimator.latest_checkpoint()
        assert path is not None, "training ended with a checkpoint"
        step = checkpoint_step(path)
        for spec in self._specs:
            with outermost(self._estimator) as context:
                if self.metrics.get(spec.name, {}).get("global_step") != step:
                    self.evaluate_now(spec, context)
                if self._final_at.get(spec.name) != step:
                    self.export(spec, context, path, final=True)
        self.wait()

    def of_checkpoint(self, path: str, *, final: bool, specs: Sequence[EvalSpec] | None = None) -> bool:
        """Evaluates a checkpoint, for all specs or these, and exports it.

        Returns False if the run that trains has deleted it meanwhile.
        """
        try:
            for spec in self._specs if specs is None else specs:
                with outermost(self._estimator) as context:
                    self.evaluate_now(spec, context, path)
                    self.export(spec, context, path, final=final)
        except CheckpointNotFoundError:
            step, existing = checkpoint_step(path), [*map(checkpoint_step, all_checkpoints(self._estimator.model_dir))]
            # If it exists, another one is missing, such as that of a teacher.
            if step in existing or (final and max(existing, default=-1) < step):
                raise
            _log.warning(
                "%s was deleted before it was evaluated and exported. A newer checkpoint follows. A larger "
                "keep_checkpoint_max in the training run leaves more time for evaluations.",
                path,
            )
            return False
        return True

    def export_final(self) -> None:
        """Exports the last evaluated state of each spec as the final one, unless it is already exported as such."""
        for spec in self._specs:
            step = self.metrics.get(spec.name, {}).get("global_step")
            if step is not None and self._final_at.get(spec.name) != step:
                with outermost(self._estimator) as context:
                    self.export(spec, context, checkpoint_path(self._estimator.model_dir, step), final=True)

    def wait(self) -> None:
        """Waits until exports in the background are complete, and publishes them."""
        for spec in self._specs:
            for index, exporter in enumerate(spec.exporters):
                if isinstance(exporter, ExportsInBackground):
                    with _naming(exporter, "wait"):
                        self.exports[spec.name][index] = exporter.wait() or self.exports[spec.name][index]
        publish(self._estimator)

    def evaluate_now(self, spec: EvalSpec, context: RunContext, path: str | None = None) -> None:
        """Runs one evaluation, of the newest state or of a checkpoint."""
        with noting_origin(lambda: f"in the evaluation{_named(spec)} of its EvalSpec"):
            self.metrics[spec.name] = evaluate_within(context, spec, path)

    def export(self, spec: EvalSpec, context: RunContext, path: str, *, final: bool) -> None:
        """Runs the exporters of one EvalSpec with its newest metrics. With several processes, only on the chief."""
        metrics = self.metrics[spec.name]
        self._export(spec, context, path, metrics, final=final)
        if final:
            self._final_at[spec.name] = metrics["global_step"]

    def _export(self, spec: EvalSpec, context: RunContext, path: str, metrics: dict[str, Any], *, final: bool) -> None:
        devices = context.devices
        for index, exporter in enumerate(spec.exporters if devices.processes.index == 0 else ()):
            export_path = str(Path(self._estimator.model_dir) / "export" / exporter.name)
            with _naming(exporter, f"export of {path}"):
                with entered(context.within(devices=devices.alone())):
                    written = exporter.export(self._estimator, export_path, path, metrics, final)
                if not isinstance(written, str | os.PathLike | None):
                    raise ExportError(f"export() returned {written!r}; it must return the path of the export, or None.")
                if written is not None:
                    complete_export(self._estimator, written)
                    self.exports[spec.name][index] = written


def _naming(exporter: Any, what: str) -> contextlib.AbstractContextManager[None]:
    """Adds a note to an error in the block that names the exporter."""
    return noting_origin(lambda: f"in {describe(exporter, 'exporter')} ({exporter.name}), {what}")


def _named(spec: EvalSpec) -> str:
    return "" if spec.name is None else f" {spec.name!r}"


def _context(run: Run) -> RunContext:
    """Returns the context of the training call to which the evaluations belong."""
    assert isinstance(run, LoopRun)
    return run.context


def _state_of(run: Run) -> tuple[int, int]:
    """Returns the step and the version of the state, which identify the values of the variables."""
    assert isinstance(run, LoopRun)
    return run.step, run.live.version
