"""Evaluations and exports of a training run: those of its checkpoints, and evaluations between them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from estimator_core._cluster.connect import Peers
from estimator_core._export import ExportsInBackground, KnowsEvaluation
from estimator_core._summaries import forget_later_eval_metrics, open_summary_writer, read_eval_metrics
from estimator_core.errors import PreemptedError
from estimator_core.hooks import CheckpointListener, Run, SavedCheckpoint
from estimator_core.specs import EvalSpec

if TYPE_CHECKING:
    from estimator_core._loop.run import LoopRun

_log = logging.getLogger("estimator_core")


class Evaluations(CheckpointListener):
    """Evaluates every EvalSpec before a save, and runs its exporters after the commit; evaluates between saves, too.

    Attributes:
        metrics: the newest result by EvalSpec name.
        exports: the newest path of each exporter in this call, in order, by EvalSpec name.
    """

    def __init__(
        self, estimator: Any, specs: Sequence[EvalSpec], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._estimator = estimator
        self._specs = list(specs)
        self._clock = clock
        # At checkpoints, and between them: what is evaluated between must not keep a checkpoint from its exports.
        self._started: dict[str | None, float] = {}
        self._started_between: dict[str | None, float] = {}
        #: Step and variables of the newest evaluation of each spec inside the run.
        self._newest: dict[str | None, tuple[int, Any]] = {}
        self._pending: list[EvalSpec] = []
        self._evaluated: tuple[int, Any] = (-1, None)
        self._final_at: dict[str | None, int] = {}
        self.metrics: dict[str | None, dict[str, Any]] = {}
        self.exports: dict[str | None, list[Any]] = {spec.name: [None] * len(spec.exporters) for spec in specs}
        for spec in specs:
            for exporter in spec.exporters:
                if isinstance(exporter, KnowsEvaluation):
                    exporter.used_in(spec.name)

    def begin(self, run: Run) -> None:
        """Forgets what a killed run has recorded behind the step from which this one goes on."""
        for spec in self._specs if self._peers.is_chief else ():
            directory = self._estimator.eval_dir(spec.name)
            if any(step > run.step for step in read_eval_metrics(directory)):
                forget_later_eval_metrics(directory, run.step)
                self._estimator._engine.event_files.append(open_summary_writer(directory, resume_step=run.step))

    def evaluate(self, run: Run) -> None:
        """Evaluates the live state, unless the last evaluation at a checkpoint is younger than `throttle_secs` and the
        run goes on.
        """
        self._pending = []  # of an attempt that was broken off
        ends = run.stop_reason is not None or run.step == run.last_step
        self._pending = self._evaluate_all(self._specs, run, self._started, always=ends)
        self._evaluated = (run.step, _variables(run))

    def next_step(self, step: int) -> int | None:
        """The next step at which an EvalSpec wants an evaluation of its own, checkpoint or not."""
        return min(((step // n + 1) * n for spec in self._specs if (n := spec.every_steps)), default=None)

    def evaluate_between(self, run: Run) -> None:
        """Evaluates the EvalSpecs that ask for this step, unless that has been done for a checkpoint."""
        asking = [spec for spec in self._specs if spec.every_steps and run.step % spec.every_steps == 0]
        started = {**self._started_between}
        for name, at in self._started.items():
            started[name] = max(at, started.get(name, at))
        for spec in self._evaluate_all(asking, run, started, always=False):
            self._started_between[spec.name] = started[spec.name]

    def _evaluate_all(
        self, specs: Sequence[EvalSpec], run: Run, started: dict[str | None, float], *, always: bool
    ) -> list[EvalSpec]:
        """Evaluates the specs that are not throttled, and gives them; those that have been evaluated already, too.

        Args:
            specs: the specs.
            run: the run.
            started: when each was evaluated last; written to.
            always: whatever the throttle says.
        """
        evaluated: list[EvalSpec] = []
        for spec in specs:
            step, variables = self._newest.get(spec.name, (-1, None))
            if step == run.step and variables is _variables(run):
                evaluated.append(spec)
                continue
            now = self._clock()
            since = self._peers.chief_says("throttle", now - started.get(spec.name, -1e9))
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
            self.evaluate_now(spec)
            self._newest[spec.name] = (run.step, _variables(run))
            evaluated.append(spec)
        return evaluated

    def after_save(self, run: Run, step: int, checkpoint: SavedCheckpoint) -> bool | None:
        """Runs the exporters of the evaluations that belong to this save."""
        pending, self._pending = self._pending, []
        replaced = self._evaluated[0] == step and self._evaluated[1] is not _variables(run)
        if (replaced or any(spec.exporters for spec in pending)) and cast("LoopRun", run).asked_to_stop():
            raise PreemptedError(f"The exports of step {step} were left out.")
        if replaced:
            # A hook has put other weights in place for the last save; `finish` exports them.
            for spec in self._specs:
                self.evaluate_now(spec)
            return None
        for spec in pending:
            if spec.exporters:
                self.export(spec, checkpoint.path, final=step == run.last_step)
        return None

    def finish(self) -> None:
        """After training, however it ended: the last step is evaluated, and exported as the final one."""
        path = self._estimator.latest_checkpoint()
        step = int(Path(path).name)
        for spec in self._specs:
            if self.metrics.get(spec.name, {}).get("global_step") != step:
                self.evaluate_now(spec)
            if self._final_at.get(spec.name) != step:
                self.export(spec, path, final=True)
        self.wait()

    def export_final(self, checkpoint_path: str) -> None:
        """Exports what was evaluated last as the final one, where that has not been done."""
        for spec in self._specs:
            if spec.name in self.metrics and self._final_at.get(spec.name) != self.metrics[spec.name]["global_step"]:
                self.export(spec, checkpoint_path, final=True)

    def wait(self) -> None:
        """Until exports in the background are complete."""
        for spec in self._specs:
            for index, exporter in enumerate(spec.exporters):
                if isinstance(exporter, ExportsInBackground):
                    self.exports[spec.name][index] = exporter.wait() or self.exports[spec.name][index]

    @property
    def _peers(self) -> Peers:
        return self._estimator._engine.peers

    def evaluate_now(self, spec: EvalSpec, checkpoint_path: str | None = None) -> None:
        """One evaluation."""
        engine = self._estimator._engine
        engine.replaces_results = True  # a killed run may have recorded this one
        try:
            self.metrics[spec.name] = self._estimator.evaluate(
                spec.input_fn, steps=spec.steps, hooks=spec.hooks, checkpoint_path=checkpoint_path, name=spec.name
            )
        finally:
            engine.replaces_results = False

    def export(self, spec: EvalSpec, checkpoint_path: str, *, final: bool) -> None:
        """Runs the exporters of one EvalSpec with its newest metrics; in several processes the chief's alone."""
        metrics = self.metrics[spec.name]
        for index, exporter in enumerate(spec.exporters if self._peers.is_chief else ()):
            export_path = str(Path(self._estimator.model_dir) / "export" / exporter.name)
            with self._estimator._engine.alone():
                written = exporter.export(self._estimator, export_path, checkpoint_path, metrics, final)
            if written is not None:
                self.exports[spec.name][index] = written
        if final:
            self._final_at[spec.name] = metrics["global_step"]


def _named(spec: EvalSpec) -> str:
    return "" if spec.name is None else f" {spec.name!r}"


def _variables(run: Run) -> Any:
    return cast("LoopRun", run).live.ready.variables
