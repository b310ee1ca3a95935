"""The hook that writes what model_fn passed to `ec.summary` to the event file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.hook_writer import HookWriter
from estimator_core._builtin_hooks.output_names import PresentNames
from estimator_core._builtin_hooks.timer import SecondOrStepTimer
from estimator_core.hooks import Hook, Run, StepOutputs, SummaryWriter, Wake

_WRITTEN = ("scalar", "metric", "histogram", "image")


class SummarySaverHook(Hook):
    """Writes the loss, hyperparameters, training metrics and the model's summaries, at the first step and at intervals.

    Args:
        save_steps: steps between two points.
        save_secs: seconds between two points. Exactly one of the two.
        output_dir: directory of the event file; default: the run's.
        summary_writer: writes the points, instead of `output_dir`.

    Raises:
        ArgumentError: neither or both of the intervals are given.

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
        self._present = PresentNames("SummarySaverHook")

    def after_create(self, run: Run) -> None:
        """Learns which outputs are summaries."""
        if not run.resumed:
            self._timer.reset()
            self._texts = {}
        self._kinds = {name: kind for name, kind in run.output_kinds.items() if kind in _WRITTEN}
        self._writer.open(run)

    def next_step(self, step: int) -> Wake:
        """The timer's next step. The hook only reads outputs."""
        return self._timer.wake(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes one point of each summary."""
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        for name in self._present.of(self._kinds, out, step):
            _write(self._writer, self._kinds[name], name, out[name], step)
        for name, text in run.texts.items():
            if self._texts.get(name) != text:  # a text does not depend on the batch: once is enough
                self._writer.text(name, text, step)
                self._texts[name] = text

    def end(self, run: Run) -> None:
        """Closes its own event file."""
        self._writer.close()

    def state(self) -> Mapping[str, Any]:
        """The cadence; the event file is complete up to here."""
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
    elif np.size(value) == 1:  # a training metric may be an array, which TensorBoard has no curve for
        writer.scalar(name, float(np.asarray(value).reshape(())), step)
