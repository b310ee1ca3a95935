"""What several processes decide together, so that all do the same at the same step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from estimator_core._backends import Devices
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._cluster import Processes
from estimator_core._cluster.processes import chief_says, gather
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._plugins import Plugins
from estimator_core._roles import ROLES
from estimator_core.config import RunConfig
from estimator_core.coordinator import Coordinator
from estimator_core.errors import PreemptedError
from estimator_core.hooks import Hook, Run

if TYPE_CHECKING:
    from estimator_core._loop.shared_feed import Flags

INTERRUPTED = "interrupted by the platform"


class Decisions(Protocol):
    """Decisions that do not follow from the steps alone: signals, and hooks that request a stop."""

    @property
    def platform(self) -> Asks:
        """Looked at before each step of a lone process."""
        ...

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        ...

    def stop_reason(self, run: Run) -> str | None:
        """Why the loop ends before its next dispatch; None: it continues."""
        ...

    def final_reason(self, run: Run, reason: str) -> str:
        """Why the loop ended, once the hooks that were late have been called."""
        ...


class Asks(Protocol):
    """The platform."""

    @property
    def requested(self) -> bool:
        """Whether it wants a stop."""
        ...


class Breaks(Protocol):
    """Something that can interrupt an evaluation."""

    def break_off(self, run: Run) -> None:
        """Called before each batch is used.

        Raises:
            PreemptedError: the platform wants a stop.
        """
        ...


class _Decides:
    """What all `Decisions` have in common."""

    shared = False
    #: Hooks, or what stands in their places, that run in the first process alone.
    chief_hooks: Sequence[Hook] = ()

    @property
    def platform(self) -> Asks:
        """Looked at before each step of a lone process."""
        return self

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        return False

    def stop_reason(self, run: Run) -> str | None:
        """The request of a hook, the last step, or an interruption by the platform; None if there is no reason."""
        if run.stop_reason is not None:
            return run.stop_reason
        if run.last_step is not None and run.step >= run.last_step:
            return f"reached step {run.step}"
        return INTERRUPTED if self.requested else None

    def final_reason(self, run: Run, reason: str) -> str:
        """The platform's interruption, otherwise the reason of a hook, otherwise the loop's own."""
        return reason if run.stop_reason is None or reason == INTERRUPTED else run.stop_reason

    def break_off(self, run: Run) -> None:
        """Interrupts an evaluation if the platform wants a stop.

        Raises:
            PreemptedError: it does.
        """
        if self.requested:
            raise PreemptedError(f"The evaluation was broken off after {run.step} batches.")

    def give_up(self, error: Exception) -> None:
        """Ends the run at once because of an error that no further step can mend."""
        raise error

    def overdue(self, look: Callable[[], Sequence[int]]) -> Sequence[int]:
        """The overdue hooks by the clock of this process."""
        return look()

    def due(self, hook: Hook, at: int | None, joins: bool) -> tuple[int | None, bool]:
        """When a hook wants control next."""
        return at, joins

    def agree(self, run: Run) -> None:
        """Called after hooks had control. There are no other processes to inform."""

    def follow(self, batches: object) -> None:
        """Called for the batches of an evaluation inside training. There are no other processes to inform."""


class NobodyAsks(_Decides):
    """The decisions outside training, where nothing is interrupted."""


NOBODY_ASKS = NobodyAsks()


class OwnDecisions(_Decides):
    """The decisions of a lone process."""

    def __init__(self, preemption: Preemption) -> None:
        self._preemption = preemption

    @property
    def platform(self) -> Asks:
        """Looked at before each step of a lone process."""
        return self._preemption

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        return self._preemption.requested

    def watch(self, batches: object, schedule: HookSchedule) -> None:
        """Called for the batches of training. There are no other processes to inform."""


class SharedDecisions(_Decides):
    """The decisions of several processes.

    A signal to any of them and the clock of the first travel with the batches. They take effect some batches later, at
    the same batch in all processes. After hooks had control, flags show whether one of them requested a stop.

    Args:
        preemption: notices signals to this process.
        processes: those that decide together.
        flags: the flags of their devices.
        lag: batches between a message and its effect.
    """

    shared = True

    def __init__(self, preemption: Preemption, processes: Coordinator, flags: Flags, *, lag: int) -> None:
        self._preemption, self._processes, self._flags_of_all, self._lag = preemption, processes, flags, lag
        self._due: Sequence[int] = ()
        self._just_fired: dict[int, int] = {}
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop of any process."""
        return self._requested

    def watch(self, batches: Any, schedule: HookSchedule) -> None:
        """Sends signals and the chief's clock with the batches of training."""
        batches.flags, batches.learn = lambda: self._flags(schedule), self._learn

    def give_up(self, error: Exception) -> None:
        """Stops all processes at one batch. Each then waits for its last commit, which raises the error."""
        self._preemption.request(str(error))

    def overdue(self, look: Callable[[], Sequence[int]]) -> Sequence[int]:
        """The overdue hooks by the chief's clock."""
        due, self._due = self._due, ()
        self._just_fired.update(dict.fromkeys(due, self._lag + 1))
        return due

    def due(self, hook: Hook, at: int | None, joins: bool) -> tuple[int | None, bool]:
        """When a hook wants control next. That of the first process alone says so for all: they stop at its steps."""
        if any(hook is one for one in self.chief_hooks):
            at, joins = chief_says(self._processes, "chief-hook", [at, joins])
        return at, joins

    def agree(self, run: Run) -> None:
        """Called after hooks had control. A stop that a hook requested in one process applies to all."""
        if not any(self._flags_of_all([run.stop_reason is not None])().high):
            return
        reasons = gather(self._processes, "stop", run.stop_reason)
        reason = next((one for one in reasons if one is not None), None)
        if reason is not None:
            run.request_stop(reason)

    def follow(self, batches: Any) -> None:
        """Sends signals with the batches of an evaluation inside training, too."""
        batches.flags, batches.learn = self._stop_flag, self._learn_stop

    def _flags(self, schedule: HookSchedule) -> dict[str, Any]:
        """What this process sends with its next batch."""
        return {**self._stop_flag(), "due": list(schedule.overdue()) if self._processes.index == 0 else []}

    def _learn(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Notes what all processes sent with the next batch."""
        self._learn_stop(told)
        self._just_fired = {hook: left - 1 for hook, left in self._just_fired.items() if left > 1}
        self._due = [hook for hook in told[0]["due"] if hook not in self._just_fired]

    def _stop_flag(self) -> dict[str, Any]:
        stop = f"{self._preemption.reason} in process {self._processes.index}" if self._preemption.requested else None
        return {"stop": stop}

    def _learn_stop(self, told: Sequence[Mapping[str, Any]]) -> None:
        stop = next((one["stop"] for one in told if one["stop"] is not None), None)
        if stop is not None and not self._requested:
            self._requested = True
            self._preemption.request(stop)


def decisions_of(devices: Devices, preemption: Preemption) -> OwnDecisions | SharedDecisions:
    """The decisions of a training call on these devices."""
    if not devices.placement.spans_processes:
        return OwnDecisions(preemption)
    from estimator_core._loop.shared_feed import AHEAD, step_flags

    return SharedDecisions(preemption, devices.processes, step_flags(devices.placement.mesh), lag=AHEAD)


def connected(config: RunConfig, plugins: Plugins, processes: Processes | None) -> Coordinator:
    """Connects this process with the others of its run.

    Args:
        config: says which component takes the role.
        plugins: where it is looked up.
        processes: of the run; None: those that jax knows already.
    """
    name = str(config.components.get("coordinator", plugins.default("coordinator", ROLES["coordinator"].default)))
    connect: Callable[..., Coordinator] = plugins.get("coordinator", name)
    return connect(processes, plugins.options("coordinator", name))
