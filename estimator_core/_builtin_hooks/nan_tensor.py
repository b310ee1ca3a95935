"""Ends training when the loss is no longer finite."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from estimator_core._builtin_hooks.output_names import checked_types
from estimator_core._builtin_hooks.timer import at_most
from estimator_core.errors import NanLossDuringTrainingError
from estimator_core.hooks import Hook, Run, StepOutputs, Wake

_log = logging.getLogger("estimator_core")
_LOSS, _EVERY = "loss", 100


class NanTensorHook(Hook):
    """Watches a scalar output of every step without making the loop wait: values of past steps are delivered in bulk.

    The step that was first not finite is named although it is noticed some steps later. Checkpoints are safe meanwhile:
    a state that is not finite is never saved.

    Args:
        loss_tensor: the name of the output.
        fail_on_nan_loss: raise an error; False: request a stop and log a warning.

    Raises:
        NanLossDuringTrainingError: in the run, when a value is NaN or infinite.

    Example:
        >>> NanTensorHook("activation").next_step(0) is None  # it follows the values of every step
        True

    Source: `tf.compat.v1.train.NanTensorHook`, which looks for NaN only.
    """

    def __init__(self, loss_tensor: str = "loss", fail_on_nan_loss: bool = True) -> None:
        (self._name,) = checked_types("NanTensorHook", [loss_tensor])
        self._fail = fail_on_nan_loss
        self._last_step: int | None = None

    def begin(self, run: Run) -> None:
        """Follows the output, where it is not the loss: the state notes bad losses by itself."""
        if self._name != _LOSS:
            run.follow(self._name)

    def after_create(self, run: Run) -> None:
        """Starts to look."""
        self._last_step = run.last_step

    def next_step(self, step: int) -> Wake | None:
        """Looks whenever another hook has interrupted the loop, a hundred steps after the last look at the latest, and
        at the last step; the step itself notes the first bad one, at no cost.

        It may look late if it raises. A stop is requested at an exact step.
        """
        if self._name != _LOSS:
            return None
        due = at_most(step + _EVERY, self._last_step, step)
        return Wake(step=due, within=_EVERY - 1 if self._fail else 0, joins=True)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Asks the state for its first step with a bad loss."""
        bad = int(out["first_bad_step"])
        if bad:
            self._diverged(run, bad, "not finite")

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Looks for the first value that is not finite."""
        watched = np.asarray(values[self._name])
        bad = np.flatnonzero(~np.isfinite(watched))
        if bad.size:
            self._diverged(run, steps[int(bad[0])], str(float(watched[bad[0]])))

    def _diverged(self, run: Run, step: int, value: str) -> None:
        _log.error("Model diverged with %s = %s at step %d.", self._name, value, step)
        if self._fail:
            raise NanLossDuringTrainingError(
                f"NaN loss during training. {self._name} is {value} at step {step}. The newest checkpoint is from "
                "before "
                "it. Lower the learning rate, clip gradients, or look at that step with RunConfig(debug=True).",
                step=step,
            )
        run.request_stop(f"{self._name} = {value} at step {step}")
