"""The amount of device memory in use."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from estimator_core.builtin_hooks import SecondOrStepTimer, point_step, whole_steps
from estimator_core.hooks import Hook, Run, StepOutputs

_log = logging.getLogger("estimator_hooks")
_SHOWN = ("bytes_in_use", "peak_bytes_in_use", "bytes_limit")


class DeviceMemoryHook(Hook):
    """Logs the memory of the devices of this process in bytes at intervals, and writes it to the event file.

    For devices that do not report memory (CPU), it shows the bytes of all live arrays instead.

    Args:
        every_n_steps: steps between two points.

    Example:
        >>> DeviceMemoryHook(every_n_steps=100).next_step(0)
        1
    """

    def __init__(self, every_n_steps: int = 100) -> None:
        self._timer = SecondOrStepTimer(every_steps=whole_steps(self, "every_n_steps", every_n_steps))

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues the one of the interrupted call."""
        if not run.resumed:
            self._timer.reset()

    def next_step(self, step: int) -> int | None:
        """Returns the next step of the timer."""
        return self._timer.next_step(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes one point."""
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        values = memory_in_use()
        _log.info(
            "device memory: %s, step = %d", ", ".join(f"{k} = {v / 2**20:.1f} MiB" for k, v in values.items()), step
        )
        for name, value in values.items():
            run.summaries.scalar(f"device_memory/{name}", value, point_step(run, step))

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return self._timer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)


def memory_in_use() -> dict[str, int]:
    """Returns the bytes by kind: the largest value of the devices of this process.

    For devices that do not report memory, it is the sum of all live arrays.
    """
    import jax

    statistics: list[dict[str, int]] = [device.memory_stats() or {} for device in jax.local_devices()]
    found = {
        name: max(stats.get(name, 0) for stats in statistics) for name in _SHOWN if any(name in s for s in statistics)
    }
    return found or {"live_array_bytes": sum(array.nbytes for array in jax.live_arrays())}
