"""What several processes decide together, so that all do the same at the same step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from estimator_core._backends import Devices
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._cluster.together import gather
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core.coordinator import Coordinator
from estimator_core.errors import PreemptedError
from estimator_core.hooks import Run

if TYPE_CHECKING:
    from estimator_core._loop.step_flags import Flags

INTERRUPTED = "interrupted by the platform"


class Decisions(Protocol):
    """What does not follow from the steps alone: signals, and hooks that ask for a stop."""

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        ...

    def stop_reason(self, run: Run) -> str | None:
        """Why the loop ends before its next dispatch; None: it goes on."""
        ...

    def final_reason(self, run: Run, reason: str) -> str:
        """Why the loop ended, once the hooks that were late have been called."""
        ...


class Breaks(Protocol):
    """Who can break off an evaluation."""

    def break_off(self, run: Run) -> None:
        """Called before each batch is used.

        Raises:
            PreemptedError: the platform wants a stop.
        """
        ...


class _Decides:
    """What all who decide have in common."""

    shared = False

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        return False

    def stop_reason(self, run: Run) -> str | None:
        """A hook asked for it, the last step is reached, or the platform interrupts."""
        if run.stop_reason is not None:
            return run.stop_reason
        if run.last_step is not None and run.step >= run.last_step:
            return f"reached step {run.step}"
        return INTERRUPTED if self.requested else None

    def final_reason(self, run: Run, reason: str) -> str:
        """The platform's interruption, else what a hook asked for, else the loop's own."""
        return reason if run.stop_reason is None or reason == INTERRUPTED else run.stop_reason

    def break_off(self, run: Run) -> None:
        """Breaks an evaluation off where the platform wants a stop.

        Raises:
            PreemptedError: it does.
        """
        if self.requested:
            raise PreemptedError(f"The evaluation was broken off after {run.step} batches.")

    def overdue(self, look: Callable[[], Sequence[int]]) -> Sequence[int]:
        """By the clock of this process."""
        return look()

    def agree(self, run: Run) -> None:
        """Hooks had control: nothing to tell anybody."""

    def follow(self, batches: Any) -> None:
        """Batches of an evaluation inside the training: nothing to tell anybody."""


class NobodyAsks(_Decides):
    """Outside training: nothing is broken off."""


NOBODY_ASKS = NobodyAsks()


class OwnDecisions(_Decides):
    """The decisions of a process that is alone."""

    def __init__(self, preemption: Preemption) -> None:
        self._preemption = preemption

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        return self._preemption.requested

    def watch(self, batches: Any, schedule: HookSchedule) -> None:
        """The batches of the training: nothing to tell anybody."""


class SharedDecisions(_Decides):
    """The same for several processes.

    A signal to any of them and the clock of the first travel with the batches, so they act some batches later, in all
    processes at the same one. Where hooks had control, flags tell whether one asked for a stop.

    Args:
        preemption: notices signals to this process.
        processes: those that decide together.
        flags: of their devices.
        lag: batches between telling and acting.
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
        """Lets signals and the chief's clock travel with the batches of the training."""
        batches.flags, batches.learn = lambda: self._flags(schedule), self._learn

    def overdue(self, look: Callable[[], Sequence[int]]) -> Sequence[int]:
        """By the chief's clock."""
        due, self._due = self._due, ()
        self._just_fired.update(dict.fromkeys(due, self._lag + 1))
        return due

    def agree(self, run: Run) -> None:
        """Hooks had control: a stop that one of them asked for anywhere is one everywhere."""
        if not any(self._flags_of_all([run.stop_reason is not None])().high):
            return
        reasons = gather(self._processes, "stop", run.stop_reason)
        reason = next((one for one in reasons if one is not None), None)
        if reason is not None:
            run.request_stop(reason)

    def follow(self, batches: Any) -> None:
        """Lets a signal travel with the batches of an evaluation inside the training too."""
        batches.flags, batches.learn = self._stop_flag, self._learn_stop

    def _flags(self, schedule: HookSchedule) -> dict[str, Any]:
        """What this process tells with its next batch."""
        return {**self._stop_flag(), "due": list(schedule.overdue()) if self._processes.index == 0 else []}

    def _learn(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Takes in what all processes told with the batch that is next."""
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
    from estimator_core._loop.shared_feed import AHEAD
    from estimator_core._loop.step_flags import step_flags

    return SharedDecisions(preemption, devices.processes, step_flags(devices.placement.mesh), lag=AHEAD)
