"""Saves checkpoints at a cadence of steps or seconds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from estimator_core._builtin_hooks.hook_parts import checked_interval
from estimator_core._wrong_arguments import leaving_out
from estimator_core.errors import HookError
from estimator_core.hooks import CheckpointListener, CheckpointPolicy, Hook, Run, Wake
from estimator_core.specs import check_listeners

_IN_MODEL_DIR = (None, "the run writes into its model_dir, and keeps as many as its RunConfig says")
_RUN_SAVES: dict[str, tuple[None, str]] = dict.fromkeys(("checkpoint_dir", "saver", "scaffold"), _IN_MODEL_DIR)


class CheckpointSaverHook(CheckpointPolicy, Hook):
    """Saves at the start of a fresh run, every `save_steps` steps or `save_secs` seconds after it, and at the end.

    Args:
        save_steps, save_secs: the interval in steps or seconds. Set exactly one of them.
        listeners: the listeners that are called around each save, in order, before those of the call.

    The cadence counts from the step at which training started. A save on interruption does not shift it. The class is
    the component `cadence` of kind `checkpoint_policy`. In `hooks=` it replaces the policy of the config.

    Attributes:
        listeners: the given listeners.

    Raises:
        ArgumentError, ArgumentTypeError: both or neither of save_steps and save_secs are set, or the interval is not a
            positive number.
        HookError: the hook is in an EstimatorSpec, an evaluation or a prediction. Raised in the run.

    Example:
        >>> CheckpointSaverHook(save_steps=10).next_step(0)
        10

    Source: `tf.estimator.CheckpointSaverHook`.
    """

    name: ClassVar[str | None] = None  # both contracts have it

    @leaving_out("CheckpointSaverHook", _RUN_SAVES)
    def __init__(
        self,
        *,
        save_steps: int | None = None,
        save_secs: float | None = None,
        listeners: Sequence[CheckpointListener] | None = None,
    ) -> None:
        interval = checked_interval(self, ("save_secs", save_secs), ("save_steps", save_steps))
        self._save_secs, self._save_steps = interval
        self.listeners: Sequence[CheckpointListener] = tuple(check_listeners(listeners or ()))
        self._base_step: int | None = None
        self._base_time = time.monotonic()

    def begin(self, run: Run) -> None:
        """Refuses places in which it saves nothing. A training call does not begin the policy among its hooks."""
        raise HookError(
            "CheckpointSaverHook saves nothing here. Pass it in hooks= of train or TrainSpec, not in an EstimatorSpec, "
            "an evaluation or a prediction."
        )

    def at_start(self, run: Run) -> bool:
        """Starts the cadence, or continues the one of an interrupted call."""
        if not run.resumed or self._base_step is None:
            self._base_step = run.step
        self._base_time = time.monotonic()
        return True

    def next_step(self, step: int) -> int | Wake:
        """Returns the next step of the cadence, or the time at which its seconds have passed."""
        if self._save_steps is None:
            assert self._save_secs is not None
            return Wake(time=self._base_time + self._save_secs)
        base = self._base_step or 0
        return base + ((step - base) // self._save_steps + 1) * self._save_steps

    def saved(self, run: Run, step: int) -> None:
        """Restarts the cadence at this step."""
        self._base_step, self._base_time = step, time.monotonic()

    def at_end(self, run: Run) -> bool:
        """Restarts the cadence at this step."""
        self._base_step = run.step
        return True

    def state(self) -> Mapping[str, Any]:
        """Returns the base of the cadence."""
        return {} if self._base_step is None else {"base_step": self._base_step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the base of the cadence."""
        self._base_step = int(state["base_step"])
