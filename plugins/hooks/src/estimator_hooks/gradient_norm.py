"""Logs the norm of the gradients, and writes it to the event file."""

from __future__ import annotations

from estimator_core.errors import HookError
from estimator_core.hooks import Run
from estimator_hooks.scalar_writer import ScalarWriterHook

NAME = "gradient_norm"


class GradientNormHook(ScalarWriterHook):
    """Logs the global norm of the gradients, before any clipping, and writes it to the event file.

    The device computes it only if a hook requests it.

    Args:
        every_n_steps: steps between two points.

    Example:
        >>> GradientNormHook(every_n_steps=100).next_step(0)
        Wake(step=1, time=None, within=99, joins=False)
    """

    def begin(self, run: Run) -> None:
        """Requests the norm."""
        run.fetch(NAME)

    def output_names(self, run: Run) -> list[str]:
        """Returns the name of the norm."""
        if NAME not in run.output_names:
            raise HookError("GradientNormHook: this run computes no gradients. Pass it to train only.")
        return [NAME]
