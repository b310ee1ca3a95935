"""Logs examples per second, and the utilisation of the devices."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from estimator_core.builtin_hooks import SecondOrStepTimer, point_step, whole_steps
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run, StepOutputs
from estimator_hooks.peak_flops import peak_flops_of_devices
from estimator_hooks.step_done import wait_for_step

_log = logging.getLogger("estimator_hooks")


class ThroughputHook(Hook):
    """Logs `examples/sec`, `flops/sec` and, if the peak of the devices is known, `mfu`. Writes them to the event file.

    MFU (model FLOP/s utilisation) is the rate of useful floating point operations over the peak of all devices.

    Args:
        every_n_steps: steps between two points. The first step of a call, which compiles, is not counted.
        flops_per_step: floating point operations of one step on the global batch. Default: the count of XLA before
            optimisation.
        peak_flops: peak operations per second of all devices together. Default: the value from the installed backends.

    Raises:
        ArgumentError: a number is not positive.

    Example:
        >>> ThroughputHook(every_n_steps=50, flops_per_step=2.4e9).next_step(0)
        1

    Source: MFU as in Chowdhery et al., PaLM (2022), appendix B.
    """

    def __init__(
        self, every_n_steps: int = 100, *, flops_per_step: float | None = None, peak_flops: float | None = None
    ) -> None:
        for name, value in (("flops_per_step", flops_per_step), ("peak_flops", peak_flops)):
            if value is not None and not value > 0:
                raise ArgumentError(f"ThroughputHook: {name} must be > 0, given: {value}")
        self._timer = SecondOrStepTimer(every_steps=whole_steps(self, "every_n_steps", every_n_steps))
        self._flops_per_step = flops_per_step
        self._flops: float | None = None
        self._given_peak = peak_flops
        self._peak: float | None = None
        self._base: tuple[int, float] | None = None

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues the one of the interrupted call."""
        self._base = None
        if not run.resumed:
            self._timer.reset()
        self._flops = self._flops_per_step
        self._peak = self._given_peak or peak_flops_of_devices()
        if self._peak is None:
            _log.info("ThroughputHook: no backend knows the peak FLOP/s of these devices; set peak_flops for the MFU.")

    def next_step(self, step: int) -> int | None:
        """Returns the first step, from which the rate is measured, then the next step of the timer."""
        return step + 1 if self._base is None else self._timer.next_step(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Writes the rates since the last point."""
        wait_for_step(out)
        now = time.monotonic()
        if self._flops is None and self._base is None:
            self._flops = run.step_flops()
            now = time.monotonic()
        if self._base is not None and now > self._base[1]:
            self._write(run, step, (step - self._base[0]) / (now - self._base[1]))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
        self._base = (step, now)

    def state(self) -> Mapping[str, Any]:
        """Returns the cadence."""
        return self._timer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues the cadence."""
        self._timer.restore(state)

    def _write(self, run: Run, step: int, steps_per_sec: float) -> None:
        values = {"examples/sec": steps_per_sec * run.batch_size}
        if self._flops is not None:
            values["flops/sec"] = steps_per_sec * self._flops
            if self._peak is not None:
                values["mfu"] = values["flops/sec"] / self._peak
        _log.info("%s", ", ".join(f"{name}: {value:.6g}" for name, value in values.items()))
        for name, value in values.items():
            run.summaries.scalar(name, value, point_step(run, step))
