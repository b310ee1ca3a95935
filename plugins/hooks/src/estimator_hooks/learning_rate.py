"""Logs learning rates, and writes them to the event file."""

from __future__ import annotations

from estimator_core.errors import HookError
from estimator_core.hooks import Run
from estimator_hooks.scalar_writer import ScalarWriterHook


class LearningRateHook(ScalarWriterHook):
    """Logs every learning rate of the optimizer at the first step and at intervals, and writes it to the event file.

    The optimizer must expose its rate: `optax.inject_hyperparams(optax.adam)(learning_rate=schedule)`.

    Args:
        every_n_steps: steps between two points.

    Raises:
        HookError: the optimizer does not expose a learning rate; raised in the run.

    Example:
        >>> LearningRateHook(every_n_steps=100).next_step(0)
        Wake(step=1, time=None, within=99, joins=False)
    """

    def output_names(self, run: Run) -> list[str]:
        """The outputs whose last part is `learning_rate`."""
        names = sorted(name for name in run.output_names if name.rpartition("/")[2].startswith("learning_rate"))
        if not names:
            raise HookError(
                "LearningRateHook: the optimizer reports no learning rate. Build it as "
                "optax.inject_hyperparams(optax.adam)(learning_rate=schedule)."
            )
        return names
