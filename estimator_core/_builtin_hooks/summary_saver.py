"""Writes the summaries of model_fn to the event file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.hook_parts import (
    HookWriter,
    PresentNames,
    SecondOrStepTimer,
    checked_interval,
    point_step,
)
from estimator_core.hooks import Hook, Run, StepOutputs, SummaryWriter, Wake
from estimator_core.modes import ModeKeys

_WRITTEN = ("scalar", "metric", "histogram", "image")


class SummarySaverHook(Hook):
    """Writes the loss, hyperparameters, training metrics and the model's summaries, at the first step and at intervals.

    An evaluation writes the model's summaries of its first batch, at the global step of its weights.

    Args:
        save_steps: the steps between two points.
        save_secs: the seconds between two points. Set exactly one of the two.
        output_dir: the directory of the event file. Default: the directory of the run. Of several processes, only the
            chief writes.
        summary_writer: the writer of the points, instead of `output_dir`.

    Raises:
        ArgumentError, ArgumentTypeError: neither or both of the intervals are set, or the interval is not a positive
            number.

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
        interval = checked_interval(self, ("save_secs", save_secs), ("save_steps", save_steps))
        self._timer = SecondOrStepTimer(*interval)
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
