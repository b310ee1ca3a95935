"""A trace of a run."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from estimator_core.builtin_hooks import SecondOrStepTimer, whole_steps
from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run, StepOutputs
from estimator_hooks.step_done import wait_for_step


class TraceHook(Hook):
    """Traces a call with OpenTelemetry: a span for the call, and inside it one span per group of steps, with the loss.

    The last span has no loss if the call fails or ends early. Spans of a prediction have no loss.

    The span of the call records why the call stopped, and has the status "error" if it failed. It is the current span
    while the call runs, so other spans of that time are inside it.

    Args:
        every_n_steps: the number of steps per span.
        provider: the tracer provider. None: the one configured in OpenTelemetry.

    Raises:
        ArgumentError: OpenTelemetry is not installed; raised in the run.

    Example:
        >>> TraceHook(every_n_steps=50).next_step(0)
        1
    """

    place = "early"

    def __init__(self, every_n_steps: int = 100, *, provider: Any = None) -> None:
        self._timer = SecondOrStepTimer(every_steps=whole_steps(self, "every_n_steps", every_n_steps))
        self._provider = provider
        self._current: AbstractContextManager[Any] | None = None
        self._span: Any = None
        self._tracer: Any = None
        self._since: tuple[int, int] | None = None
        self._last: int | None = None

    def begin(self, run: Run) -> None:
        """Begins the span of the call."""
        try:
            trace: Any = import_module("opentelemetry.trace")
        except ImportError as error:
            raise ArgumentError(
                "TraceHook needs OpenTelemetry. Install it: pip install 'estimator-hooks[telemetry]'"
            ) from error
        self._tracer = (self._provider or trace.get_tracer_provider()).get_tracer("estimator_hooks")
        current: AbstractContextManager[Any] = self._tracer.start_as_current_span(run.mode)
        self._current, self._span = current, current.__enter__()
        self._span.set_attribute("estimator.model_dir", str(run.model_dir))
        self._since = None

    def after_create(self, run: Run) -> None:
        """Starts the cadence, or continues the one of the interrupted call."""
        if not run.resumed:
            self._timer.reset()
        self._span.set_attribute("estimator.first_step", run.first_step)
        self._since, self._last = (run.first_step, time.time_ns()), run.last_step

    def next_step(self, step: int) -> int | None:
        """Returns the next step of the timer, and the last step of the call."""
        due = [self._timer.next_step(step), self._last if self._last is not None and step < self._last else None]
        return min((step for step in due if step is not None), default=None)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Adds a span for the steps since the last one."""
        wait_for_step(out)
        self._add_steps(step, float(out["loss"]) if "loss" in run.output_names else None)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)

    def end(self, run: Run) -> None:
        """Ends the span of the call."""
        if self._current is None:
            return
        trace: Any = import_module("opentelemetry.trace")
        if self._since is not None and run.step > self._since[0]:
            self._add_steps(run.step, None)
        self._span.set_attribute("estimator.last_step", run.step)
        if run.stop_reason is not None:
            self._span.set_attribute("estimator.stop_reason", run.stop_reason)
        if run.failed:
            self._span.set_status(trace.StatusCode.ERROR)
        self._current.__exit__(None, None, None)
        self._current = None

    def state(self) -> dict[str, Any]:
        """Returns the cadence."""
        return dict(self._timer.state())

    def restore(self, state: Any) -> None:
        """Continues the cadence."""
        self._timer.restore(state)

    def _add_steps(self, step: int, loss: float | None) -> None:
        """Adds a span for the steps since the last one, without a loss if `loss` is None."""
        now = time.time_ns()
        if self._since is not None:
            span = self._tracer.start_span("steps", start_time=self._since[1])
            span.set_attribute("estimator.first_step", self._since[0])
            span.set_attribute("estimator.last_step", step)
            if loss is not None:
                span.set_attribute("estimator.loss", loss)
            span.end(now)
        self._since = (step, now)
