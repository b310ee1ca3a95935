"""Profiles single steps with the JAX profiler."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator_core.builtin_hooks import SecondOrStepTimer, checked_interval, whole_steps
from estimator_core.errors import HookError
from estimator_core.hooks import Hook, Run, StepOutputs, Wake
from estimator_hooks.early_stopping.agreement import same_on_all_processes
from estimator_hooks.step_done import wait_for_step

_log = logging.getLogger("estimator_hooks")


class ProfilerHook(Hook):
    """Traces `num_steps` steps at intervals, but never the first step of a call, which compiles.

    The traces are in `<output_dir>/plugins/profile/<time>_step_<first step>/`. TensorBoard shows them with its profile
    plugin, and the Perfetto viewer opens `perfetto_trace.json.gz`. With several processes, the chief writes there, and
    the others write to `<output_dir>/process_<index>`. JAX records one profile at a time. If another profile is
    running, a warning names the skipped profile, and the run continues.

    Args:
        save_steps: steps between two profiles.
        save_secs: seconds between two profiles. Set exactly one of the two.
        output_dir: the directory of the traces. Default: the model_dir of the run.
        show_memory: whether to also write `memory-<step>.prof`, a pprof profile of the device memory.
        num_steps: steps in one profile.

    Raises:
        ArgumentError, ArgumentTypeError: neither or both intervals are set, or a number is not positive, or not whole.
        HookError: `output_dir` cannot be created; raised at the start of a run.

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
        interval = checked_interval(self, ("save_secs", save_secs), ("save_steps", save_steps))
        self._timer = SecondOrStepTimer(*interval)
        self._output_dir = None if output_dir is None else Path(output_dir)
        self._show_memory = show_memory
        self._num_steps = whole_steps(self, "num_steps", num_steps)
        self._warm = False
        self._profile: tuple[Path | None, int] | None = None  # the folder (None: JAX refused) and the first step
        self._folder = Path()

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues the one of the interrupted call."""
        self._folder = _folder(self._output_dir or run.model_dir, run)
        self._warm, self._profile = False, None
        if not run.resumed:
            self._timer.reset()

    def next_step(self, step: int) -> int | Wake:
        """Returns the first step, then the step or time before a profile, and the last step of the profile."""
        if not self._warm:
            return step + 1
        if self._profile is not None:
            return max(self._profile[1] + self._num_steps - 1, step + 1)
        due = self._timer.next_step(step)
        return Wake(step=None if due is None else max(due - 1, step + 1), time=self._timer.next_time())

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Ends a profile after its last step, and starts one before its first step."""
        if not self._warm:
            self._warm = True
            if self._timer.last_triggered_step() is None:
                self._timer.update_last_triggered_step(step)
        if self._profile is not None and step >= self._profile[1] + self._num_steps - 1:
            wait_for_step(out)
            self._finish(step)
        # The clocks of the processes differ, but all processes need the same steps.
        due = step != run.last_step and self._timer.should_trigger_for_step(step + 1)
        if self._profile is None and same_on_all_processes(due):
            wait_for_step(out)
            self._start(step + 1)

    def end(self, run: Run) -> None:
        """Ends a profile in progress."""
        if self._profile is not None:
            self._finish(run.step)

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return self._timer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)

    def _start(self, step: int) -> None:
        import jax

        self._timer.update_last_triggered_step(step)
        options = jax.profiler.ProfileOptions()
        # JAX names a profile by the second, so two profiles of one second would overwrite each other.
        options.session_id = f"{time.strftime('%Y_%m_%d_%H_%M_%S')}_step_{step}"
        try:
            jax.profiler.start_trace(str(self._folder), create_perfetto_trace=True, profiler_options=options)
        except RuntimeError as error:  # a failed profile must not end the run
            _log.warning("ProfilerHook: the profile that begins at step %d is skipped: %s", step, error)
            self._profile = None, step  # it ends at the same step as in other processes
            return
        self._profile = self._folder / "plugins" / "profile" / options.session_id, step

    def _finish(self, step: int) -> None:
        import jax

        assert self._profile is not None
        (folder, first), self._profile = self._profile, None
        if folder is None:
            return
        try:
            jax.profiler.stop_trace()
            if step < first:  # the input ended, or a hook stopped the run, before the first step of the profile
                shutil.rmtree(folder)
                return
            if self._show_memory:
                jax.profiler.save_device_memory_profile(str(self._folder / f"memory-{step}.prof"))
        except Exception as error:  # a full disk, for example: a failed profile must not end the run
            _log.warning(
                "ProfilerHook: the profile of the steps up to %d could not be written to %s (%s: %s).",
                step,
                folder,
                type(error).__name__,
                error,
            )
            return
        _log.info("Profile of the steps up to %d: %s", step, folder)


def _folder(output_dir: Path, run: Run) -> Path:
    """Returns the folder of this process, and creates it. Processes of one machine would otherwise write the same
    files.
    """
    group = run.config.process_group
    folder = output_dir if group is None or group.is_chief else output_dir / f"process_{group.index}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HookError(
            f"ProfilerHook: the folder {folder} cannot be created ({error}). Name an output_dir in which this process "
            "may write."
        ) from error
    return folder
