"""The decisions that several processes make together, so that all do the same at the same step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimator_core._backends import Devices
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._cluster import Processes
from estimator_core._moved import SEVERAL
from estimator_core._plugins import Plugins
from estimator_core._plugins.in_use import package_of
from estimator_core._roles import ROLES
from estimator_core.config import RunConfig
from estimator_core.coordinator import Coordinator
from estimator_core.errors import PreemptedError
from estimator_core.hooks import Run

INTERRUPTED = "interrupted by the platform"


class Decisions:
    """Decisions that do not follow from the steps alone: signals, and hooks that request a stop.

    Those of this class are for a lone process.

    Args:
        platform: the object that records a stop request of the platform. None: nothing is interrupted, as outside
            training.

    Attributes:
        platform: that object. The loop looks at it before each step of a lone process.
        shared: whether another process may decide which hooks are overdue.

    Example:
        >>> Decisions().requested
        False
    """

    shared = False

    def __init__(self, platform: Preemption | None = None) -> None:
        self.platform = Preemption() if platform is None else platform

    @property
    def requested(self) -> bool:
        """Whether the platform requests a stop."""
        return self.platform.requested

    def stop_reason(self, run: Run) -> str | None:
        """Returns the request of a hook, the last step, or an interruption by the platform; None without a reason."""
        if self.stops(run):
            return run.stop_reason
        if run.last_step is not None and run.step >= run.last_step:
            return f"reached step {run.step}"
        return INTERRUPTED if self.requested else None

    def final_reason(self, run: Run, reason: str) -> str:
        """Returns the platform's interruption, otherwise the reason of a hook, otherwise that of the loop."""
        return reason if run.stop_reason is None or reason == INTERRUPTED else run.stop_reason

    def break_off(self, run: Run) -> None:
        """Interrupts an evaluation if the platform requests a stop.

        Raises:
            PreemptedError: the platform requests a stop.
        """
        if self.requested:
            raise PreemptedError(f"The evaluation was interrupted after {run.step} batches.")

    def give_up(self, error: Exception) -> None:
        """Ends the run at once because of an error that no further step can fix."""
        raise error

    def overdue(self, look: Callable[[], Sequence[int]]) -> Sequence[int]:
        """Returns the overdue hooks by the clock of this process."""
        return look()

    def of_chief(self, at: int | None, joins: bool) -> tuple[int | None, bool]:
        """Returns the step at which a hook of the first process alone needs control next, and whether it joins others
        before.
        """
        return at, joins

    def stops(self, run: Run) -> bool:
        """Returns whether a hook has requested a stop."""
        return run.stop_reason is not None

    def watch(self, batches: object, overdue: Callable[[], Sequence[int]], run: Run) -> None:
        """Called for the batches of a call.

        `overdue` returns the overdue hooks by the clock of this process. There are no other processes to inform.
        """

    def begin(self, run: Any) -> None:
        """Called when all processes have the same variables."""

    def compare(self, program: Callable[[], str]) -> None:
        """Called with a function that returns the text of the training program, before it runs."""

    def agree(self, run: Any, wake: float, waker: Callable[[], str]) -> None:
        """Called after hooks had control. There are no other processes to inform."""

    def follow(self, batches: object) -> None:
        """Called for the batches of an evaluation inside training. There are no other processes to inform."""


NOBODY_ASKS = Decisions()


def decisions_of(devices: Devices, preemption: Preemption, plugins: Plugins) -> Decisions:
    """Returns the decisions of a training call on these devices."""
    if not devices.placement.spans_processes:
        return Decisions(preemption)
    found: Decisions = of_several(plugins).decisions(preemption, devices.processes, devices.placement.mesh)
    return found


def hooks_of(devices: Devices, plugins: Plugins) -> Decisions:
    """Returns the decisions for the hooks of an evaluation or of predictions on these devices."""
    if not devices.placement.spans_processes:
        return NOBODY_ASKS
    found: Decisions = of_several(plugins).decisions_of_hooks(devices.processes, devices.placement.mesh)
    return found


def of_several(plugins: Plugins) -> Any:
    """Returns the module that lets several processes call, draw and decide together.

    Raises:
        ArgumentError: its package is missing or must not run. The message names it.
    """
    return package_of(plugins, *SEVERAL, "A run of several processes")


def connected(config: RunConfig, plugins: Plugins, processes: Processes | None) -> Coordinator:
    """Connects this process with the others of its run.

    Args:
        config: the RunConfig, which names the component for the role.
        plugins: the registry that provides the component.
        processes: the processes of the run. None: those that jax already knows.
    """
    name = str(config.components.get("coordinator", plugins.default("coordinator", ROLES["coordinator"].default)))
    made: Coordinator = plugins.make("coordinator", name, processes, plugins.options("coordinator", name))
    return made
