"""Stops a run whose loss, or another output, is not finite."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from estimator_core._builtin_hooks.hook_parts import at_most, checked_types
from estimator_core.errors import NanLossDuringTrainingError
from estimator_core.hooks import Hook, Run, StepOutputs, Wake
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")
_LOSS, _EVERY = "loss", 100
_TRAINING_HINT = (
    "No checkpoint contains this state. Lower the learning rate, clip gradients, or examine this step with "
    "RunConfig(debug=True)."
)


class NanTensorHook(Hook):
    """Checks an output of every step without delaying the loop, because values of past steps are delivered in bulk.

    The error names the first bad step, although it is detected some steps later. Checkpoints are safe meanwhile,
    because a state that is not finite is never saved.

    Args:
        loss_tensor: the name of the output.
        fail_on_nan_loss: whether to raise an error. False: logs a warning and requests a stop, up to a hundred steps
            after the bad value. The default hook that watches the loss of every run still raises an error, unless
            `RunConfig(components={"nan_tensor": None})` disables it. Saving variables with NaN raises an error too.

    Raises:
        NanLossDuringTrainingError: a value is NaN or infinite. Raised in the run.

    Example:
        >>> NanTensorHook("activation").next_step(0) is None  # it follows the values of every step
        True

    Source: `tf.compat.v1.train.NanTensorHook`, which looks for NaN only.
    """

    def __init__(self, loss_tensor: str = "loss", fail_on_nan_loss: bool = True) -> None:
        (self._name,) = checked_types("NanTensorHook", [loss_tensor])
        self._fail = fail_on_nan_loss
        self._last_step: int | None = None
        self._follows = self._name != _LOSS

    def begin(self, run: Run) -> None:
        """Follows the output, unless it is the loss of a training: the state itself records the first bad one."""
        self._follows = self._name != _LOSS or run.mode != ModeKeys.TRAIN
        if self._follows:
            run.follow(self._name)

    def after_create(self, run: Run) -> None:
        """Starts watching."""
        self._last_step = run.last_step

    def next_step(self, step: int) -> Wake | None:
        """Checks whenever another hook has interrupted the loop, at latest a hundred steps after the last check, and at
        the last step. The step itself records the first bad step, at no cost.

        It may check late if it raises an error. A stop is requested at an exact step.
        """
        if self._follows:
            return None
        due = at_most(step + _EVERY, self._last_step, step)
        return Wake(step=due, within=_EVERY - 1 if self._fail else 0, joins=True)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Reads the first step with a bad loss from the state."""
        bad = int(out["first_bad_step"])
        if bad:
            self._diverged(run, bad, "not finite")

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Finds the first value that is not finite."""
        watched = np.asarray(values[self._name])
        bad = np.argwhere(~np.isfinite(watched))
        if bad.size:
            self._diverged(run, steps[int(bad[0][0])], str(float(watched[tuple(bad[0])])))

    def _diverged(self, run: Run, step: int, value: str) -> None:
        level = logging.ERROR if self._fail else logging.WARNING
        _log.log(level, "Model diverged with %s = %s at step %d.", self._name, value, step)
        if self._fail:
            when, hint = f"in mode {run.mode!r}, whose steps are batches", "Examine this batch and the checkpoint."
            if run.mode == ModeKeys.TRAIN:
                when, hint = "during training", _TRAINING_HINT
            found = f"{self._name} is {value} at step {step}"
            raise NanLossDuringTrainingError(f"NaN loss {when}. {found}. {hint}", step=step)
        run.request_stop(f"{self._name} = {value} at step {step}")
