"""Hooks that record a run: steps per second, summaries of model_fn, and the history of the Estimator."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.hook_parts import HookWriter, PresentNames, SecondOrStepTimer, at_most, point_step
from estimator_core.hooks import Hook, Run, StepOutputs, SummaryWriter, Wake
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")
TAG = "global_step/sec"


class StepCounterHook(Hook):
    """Writes `global_step/sec`: the steps per second since the previous point.

    The first step of a call, which compiles, is not counted. The steps of an evaluation are batches. Its points are at
    the global step of its weights.

    Args:
        every_n_steps: the steps between two points.
        every_n_secs: the seconds between two points, instead of steps.
        output_dir: the directory of the event file. Default: the directory of the run.
        summary_writer: the writer of the points, instead of `output_dir`.

    Raises:
        ArgumentError: both intervals are set (`every_n_steps=None` selects seconds).

    Example:
        >>> StepCounterHook(every_n_steps=10).next_step(0)
        Wake(step=1, time=None, within=0, joins=False)

    Source: `tf.compat.v1.train.StepCounterHook`.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: SummaryWriter | None = None,
    ) -> None:
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._writer = HookWriter(output_dir, summary_writer)
        self._run: Run | None = None
        self._base: tuple[int, float] | None = None
        self._carried = (0, 0.0)

    def after_create(self, run: Run) -> None:
        """Opens the writer."""
        self._run, self._base = run, None
        if not run.resumed:
            self._timer.reset()
            self._carried = (0, 0.0)
        self._writer.open(run)

    def next_step(self, step: int) -> Wake:
        """Returns the first step, at which the measurement starts, then the steps of the timer. The hook reads only
        outputs and the clock.
        """
        wake = self._timer.wake(step)
        return wake if self._base is not None else replace(wake, step=step + 1, within=0)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes the rate. The first call only starts the clock."""
        due = self._timer.should_trigger_for_step(step)
        if not due and self._base is not None:
            return
        if "loss" in run.output_names:
            _ = out["loss"]  # waits until the step is done, because a dispatch returns before it
        if due:
            steps, secs = self._measured(step)
            self._timer.update_last_triggered_step(step)
            if steps and secs > 0:
                _log.info("%s: %.6g", TAG, steps / secs)
                self._writer.to.scalar(TAG, steps / secs, point_step(run, step))
            self._carried = (0, 0.0)
        self._base = (step, time.monotonic())

    def end(self, run: Run) -> None:
        """Closes the hook's own event file."""
        self._writer.close()

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence and the measurement since the last point, with a complete event file."""
        self._writer.flush()
        steps, secs = self._measured(0 if self._run is None else self._run.step)
        return {"timer": dict(self._timer.state()), "steps": steps, "secs": secs}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state["timer"])
        self._carried = (int(state["steps"]), float(state["secs"]))

    def _measured(self, step: int) -> tuple[int, float]:
        """Returns the steps and seconds since the last point, including those of an interrupted call, without the time
        between the calls.
        """
        steps, secs = self._carried
        if self._base is None:
            return steps, secs
        return steps + step - self._base[0], secs + time.monotonic() - self._base[1]


_WRITTEN = ("scalar", "metric", "histogram", "image")


class SummarySaverHook(Hook):
    """Writes the loss, hyperparameters, training metrics and the model's summaries, at the first step and at intervals.

    An evaluation writes the model's summaries of its first batch, at the global step of its weights.

    Args:
        save_steps: the steps between two points.
        save_secs: the seconds between two points. Set exactly one of the two.
        output_dir: the directory of the event file. Default: the directory of the run.
        summary_writer: the writer of the points, instead of `output_dir`.

    Raises:
        ArgumentError: neither or both of the intervals are set.

    Example:
        >>> SummarySaverHook(save_steps=100).next_step(0)
        Wake(step=1, time=None, within=99, joins=False)

    Source: `tf.compat.v1.train.SummarySaverHook`.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: SummaryWriter | None = None,
    ) -> None:
        self._timer = SecondOrStepTimer(every_steps=save_steps, every_secs=save_secs)
        self._writer = HookWriter(output_dir, summary_writer)
        self._kinds: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._once = False
        self._present = PresentNames("SummarySaverHook")

    def after_create(self, run: Run) -> None:
        """Determines which outputs are summaries."""
        if not run.resumed:
            self._timer.reset()
            self._texts = {}
        self._kinds = {name: kind for name, kind in run.output_kinds.items() if kind in _WRITTEN}
        self._once = run.mode == ModeKeys.EVAL
        if self._once:
            self._kinds.pop("loss", None)  # a result of the evaluation
            for name in self._kinds:
                run.fetch(name)
        self._writer.open(run)

    def next_step(self, step: int) -> Wake | None:
        """Returns the timer's next step, or only the first of an evaluation. The hook only reads outputs."""
        return None if self._once and step else self._timer.wake(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes one point of each summary."""
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        step = point_step(run, step)
        for name in self._present.of(self._kinds, out, step):
            _write(self._writer.to, self._kinds[name], name, out[name], step)
        for name, text in run.texts.items():
            if self._texts.get(name) != text:  # a text does not depend on the batch: once is enough
                self._writer.to.text(name, text, step)
                self._texts[name] = text

    def end(self, run: Run) -> None:
        """Closes the hook's own event file."""
        self._writer.close()

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence, with a complete event file."""
        self._writer.flush()
        return {"timer": dict(self._timer.state()), "texts": dict(self._texts)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state["timer"])
        self._texts = dict(state["texts"])


def _write(writer: SummaryWriter, kind: str, name: str, value: Any, step: int) -> None:
    if kind == "histogram":
        writer.histogram(name, value, step)
    elif kind == "image":
        images = np.asarray(value)
        for index, image in enumerate(images):
            writer.image(f"{name}/image" if len(images) == 1 else f"{name}/image/{index}", image, step)
    elif np.size(value) == 1:  # TensorBoard has no curve for an array, which a training metric may be
        writer.scalar(name, float(np.asarray(value).reshape(())), step)


@dataclass
class History:
    """Rows of values, oldest first. `pandas.DataFrame(history.train)` converts them to a table.

    Attributes:
        train: `{"step", "loss", ...}` at every `log_step_count_steps`, and at the last step.
        evaluations: `{"name", "global_step", metric: value, ...}` for every evaluation.
        stop_reason: the reason why the last `train` call ended.

    Example:
        >>> history = History()
        >>> history.add_evaluation(None, {"global_step": 10, "accuracy": 0.9})
        >>> history.evaluations
        [{'name': None, 'global_step': 10, 'accuracy': 0.9}]
    """

    train: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    evaluations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stop_reason: str | None = None

    def add_evaluation(self, name: str | None, metrics: Mapping[str, object]) -> None:
        """Adds one evaluation."""
        self.evaluations.append({"name": name, **metrics})


class HistoryRecorderHook(Hook):
    """Adds a row to the history at the first step, at a cadence of steps, and at the last step if that is known.

    The other hooks use the same steps, so that long dispatches are interrupted only once for all of them.

    Args:
        history: the history that receives the rows.
        every_n_steps: the steps between two rows.
    """

    def __init__(self, history: History, every_n_steps: int) -> None:
        self._history = history
        self._timer = SecondOrStepTimer(every_steps=every_n_steps)
        self._last_step: int | None = None
        self._scalars: list[str] = []

    def after_create(self, run: Run) -> None:
        """Determines the names of the scalars."""
        if not run.resumed:
            self._timer.reset()
        self._last_step = run.last_step
        self._scalars = [name for name, kind in run.output_kinds.items() if kind in ("scalar", "metric")]

    def next_step(self, step: int) -> Wake:
        """Returns the timer's next step, or the last step. The hook only reads outputs, so it may wait for the next
        trigger.
        """
        wake = self._timer.wake(step)
        return replace(wake, step=at_most(wake.step, self._last_step, step))

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Adds a row."""
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
        elif step != self._last_step:
            return
        values: Mapping[str, Any] = {name: out[name] for name in self._scalars if name in out}
        self._history.train.append(
            {"step": step, **{name: float(value) for name, value in values.items() if np.ndim(value) == 0}}
        )

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return self._timer.state()

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)
