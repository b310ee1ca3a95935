"""Ends training when the loss is no longer finite."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from estimator_core.errors import NanLossDuringTrainingError
from estimator_core.hooks import Hook, Run
from estimator_core.loop.builtin_hooks.output_names import checked_types

_log = logging.getLogger("estimator_core")


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
        >>> NanTensorHook("loss").values()
        ('loss',)

    Source: `tf.compat.v1.train.NanTensorHook`, which looks for NaN only.
    """

    def __init__(self, loss_tensor: str = "loss", fail_on_nan_loss: bool = True) -> None:
        (self._name,) = checked_types("NanTensorHook", [loss_tensor])
        self._fail = fail_on_nan_loss

    def values(self) -> Sequence[str]:
        """The watched output."""
        return (self._name,)

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Looks for the first value that is not finite."""
        losses = np.asarray(values[self._name])
        bad = np.flatnonzero(~np.isfinite(losses))
        if not bad.size:
            return
        step, value = steps[int(bad[0])], float(losses[bad[0]])
        _log.error("Model diverged with %s = %s at step %d.", self._name, value, step)
        if self._fail:
            raise NanLossDuringTrainingError(
                f"NaN loss during training. {self._name} = {value} at step {step}. The newest checkpoint is from "
                "before it. Lower the learning rate, clip gradients, or look at that step with RunConfig(debug=True).",
                step=step,
            )
        run.request_stop(f"{self._name} = {value} at step {step}")
