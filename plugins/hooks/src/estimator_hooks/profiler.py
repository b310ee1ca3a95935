"""Profiles single steps with the JAX profiler."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.builtin_hooks import SecondOrStepTimer
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run, StepOutputs, Wake

_log = logging.getLogger("estimator_hooks")


class ProfilerHook(Hook):
    """Traces `num_steps` steps at intervals, never the first step of a call, which compiles.

    The traces lie in `<output_dir>/plugins/profile/<time>/`: TensorBoard shows them with its profile plugin, and
    `perfetto_trace.json.gz` opens in the Perfetto viewer.

    Args:
        save_steps: steps between two profiles.
        save_secs: seconds between two profiles. Exactly one of the two.
        output_dir: where the traces go; default: the run's model_dir.
        show_memory: also write `memory-<step>.prof`, a pprof profile of the device memory.
        num_steps: steps in one profile.

    Raises:
        ArgumentError: none or both intervals given, or `num_steps` is not positive.

    Example:
        >>> ProfilerHook(save_steps=1000).next_step(0)
        1

    Source: `tf.compat.v1.train.ProfilerHook`; its `show_dataflow` has no counterpart.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        show_memory: bool = False,
        *,
        num_steps: int = 1,
    ) -> None:
        if num_steps < 1:
            raise ArgumentError(f"num_steps must be at least 1, given: {num_steps}")
        self._timer = SecondOrStepTimer(every_steps=save_steps, every_secs=save_secs)
        self._output_dir = None if output_dir is None else Path(output_dir)
        self._show_memory = show_memory
        self._num_steps = num_steps
        self._warm = False
        self._stop_at: int | None = None

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues that of the interrupted call."""
        self._output_dir = self._output_dir or run.model_dir
        self._warm, self._stop_at = False, None
        if not run.resumed:
            self._timer.reset()

    def next_step(self, step: int) -> int | Wake:
        """The first step, to count from; then the step or the time before a profile, and the last step in it."""
        if not self._warm:
            return step + 1
        if self._stop_at is not None:
            return max(self._stop_at, step + 1)
        due = self._timer.next_step(step)
        return Wake(step=None if due is None else max(due - 1, step + 1), time=self._timer.next_time())

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Ends a profile whose steps are done, and starts one whose first step comes next."""
        if not self._warm:
            self._warm = True
            if self._timer.last_triggered_step() is None:
                self._timer.update_last_triggered_step(step)
        if self._stop_at is not None and step >= self._stop_at:
            _ = out["loss"]  # waits until the step is done: a dispatch returns before it
            self._finish(step)
        if self._stop_at is None and self._timer.should_trigger_for_step(step + 1):
            _ = out["loss"]
            self._start(step + 1)

    def end(self, run: Run) -> None:
        """Ends a profile that is under way."""
        if self._stop_at is not None:
            self._finish(run.step)

    def state(self) -> Mapping[str, Any]:
        """The cadence."""
        return self._timer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)

    def _start(self, step: int) -> None:
        import jax

        jax.profiler.start_trace(str(self._output_dir), create_perfetto_trace=True)
        self._timer.update_last_triggered_step(step)
        self._stop_at = step + self._num_steps - 1

    def _finish(self, step: int) -> None:
        import jax

        self._stop_at = None
        jax.profiler.stop_trace()
        assert self._output_dir is not None
        if self._show_memory:
            jax.profiler.save_device_memory_profile(str(self._output_dir / f"memory-{step}.prof"))
        _log.info("Profile of the steps up to %d: %s", step, self._output_dir / "plugins" / "profile")
