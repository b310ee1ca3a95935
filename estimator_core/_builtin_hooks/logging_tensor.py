"""Logs outputs of the step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_core._builtin_hooks.hook_parts import (
    PresentNames,
    SecondOrStepTimer,
    check_known,
    checked_interval,
    checked_types,
    point_step,
)
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run, StepOutputs, Wake

_log = logging.getLogger("estimator_core")
_STEP_NAMES = ("step", "global_step")


class LoggingTensorHook(Hook):
    """Logs a line such as `accuracy = 0.98, loss = 0.12, step = 101 (0.532 sec)`.

    Args:
        tensors: the names of outputs: "loss", summaries, tensors named in model_fn, predictions or hyperparameters.
            "step" is the number of completed steps, in an evaluation or prediction that of its batches. "global_step"
            is the global step of the weights. A dict `{label: name}` sets labels. Its lines are ordered by label.
        every_n_iter: the steps between two lines. The first step is logged.
        every_n_secs: the seconds between two lines, instead of steps.
        at_end: whether to log the values of the last step when the run ends, with or without an interval. The outputs
            must be scalars.
        formatter: a function that formats the line from the values by label.

    Raises:
        ArgumentError, ArgumentTypeError: neither an interval nor `at_end` is set, both intervals are, or the interval
            is not a positive number.
        HookError: no output has one of the names. Raised in the run.

    Example:
        >>> LoggingTensorHook(["loss"], every_n_iter=10).next_step(0)
        Wake(step=1, time=None, within=9, joins=False)

    Source: `tf.compat.v1.train.LoggingTensorHook`.
    """

    def __init__(
        self,
        tensors: Mapping[str, str] | Sequence[str],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self._timer = None
        if every_n_iter is not None or every_n_secs is not None:
            secs, steps = ("every_n_secs", every_n_secs), ("every_n_iter", every_n_iter)
            self._timer = SecondOrStepTimer(*checked_interval(self, secs, steps))
        elif not at_end:
            raise ArgumentError("LoggingTensorHook: one of every_n_iter, every_n_secs and at_end must be provided.")
        if isinstance(tensors, str):
            raise ArgumentError(f"LoggingTensorHook: give a list of names, [{tensors!r}], or a dict.")
        if not isinstance(tensors, Mapping):
            tensors = {name: name for name in checked_types("LoggingTensorHook", tensors)}
            labels = list(tensors)
        else:
            labels = sorted(tensors)
        checked_types("LoggingTensorHook", tensors.values())
        self._tensors = {label: tensors[label] for label in labels}
        self._names = [name for name in tensors.values() if name not in _STEP_NAMES]
        self._at_end = at_end
        self._formatter = formatter
        self._present = PresentNames("LoggingTensorHook")
        self._last: tuple[int, dict[str, Any]] | None = None
        self._logged_step: int | None = None
        self._restored = False

    def begin(self, run: Run) -> None:
        """Requests the outputs, and those of every step if the last ones will be logged."""
        for name in self._names:
            run.fetch(name)
            if self._at_end:
                run.follow(name)

    def after_create(self, run: Run) -> None:
        """Checks the names."""
        if not run.resumed and self._timer is not None:
            self._timer.reset()
            self._restored = False
        self._last = self._logged_step = None
        check_known("LoggingTensorHook", self._names, run.output_names)

    def next_step(self, step: int) -> Wake | None:
        """Returns the next step of the timer. The hook only reads outputs."""
        return None if self._timer is None else self._timer.wake(step)

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Keeps the newest values."""
        if len(steps):
            self._last = (steps[-1], {name: stacked[-1] for name, stacked in values.items()})

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Logs a line when the timer is due."""
        if self._timer is None or not self._timer.should_trigger_for_step(step):
            return
        values = {name: np.asarray(out[name])[()] for name in self._present.of(self._names, out, step)}
        elapsed, _ = self._timer.update_last_triggered_step(step)
        self._line(run, step, values, None if self._restored else elapsed)
        self._restored = False

    def end(self, run: Run) -> None:
        """Logs the last values."""
        if not self._names and run.step > run.first_step:  # nothing is followed
            self._last = run.step, {}
        if self._at_end and self._last is not None and self._last[0] != self._logged_step:
            self._line(run, *self._last, None)

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return {} if self._timer is None else self._timer.state()

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues the cadence."""
        if self._timer is not None:
            self._timer.restore(state)
            self._restored = True  # so that the pause of the process does not count as time between two lines

    def _line(self, run: Run, step: int, values: Mapping[str, object], elapsed: float | None) -> None:
        self._logged_step = step
        known = {**values, "step": step, "global_step": point_step(run, step)}
        shown = {label: known[name] for label, name in self._tensors.items() if name in known}
        if self._formatter is not None:
            _log.info("%s", self._formatter(shown))
            return
        line = ", ".join(f"{label} = {value!s}" for label, value in shown.items())
        _log.info("%s", line if elapsed is None else f"{line} ({elapsed:.3f} sec)")
