"""What several processes decide together, so that all do the same at the same step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator_core._backends import Devices
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._cluster.together import gather
from estimator_core._loop.hook_runner import HookRunner
from estimator_core._loop.shared_feed import AHEAD
from estimator_core.coordinator import Coordinator


class NobodyAsks:
    """Outside training: nothing is broken off."""

    requested = False

    def follow(self, batches: Any) -> None:
        """Nothing to tell anybody."""


NOBODY_ASKS = NobodyAsks()


class OwnDecisions:
    """The decisions of a process that is alone."""

    def __init__(self, preemption: Preemption, runner: HookRunner) -> None:
        self._preemption = preemption
        self.look_at_clock = runner.look_at_clock

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop."""
        return self._preemption.requested

    def settle(self, run: Any) -> None:
        """Hooks had control: nothing to tell anybody."""

    def lead(self, batches: Any) -> None:
        """Batches of the training: nothing to tell anybody."""

    def follow(self, batches: Any) -> None:
        """Batches of an evaluation inside the training: nothing to tell anybody."""


class SharedDecisions:
    """The same for several processes.

    A signal to any of them and the clock of the first travel with the batches (`flags`, `learn`), so they act some
    batches later, in all processes at the same one. A stop that a hook asks for is exchanged where hooks had control.

    Args:
        preemption: notices signals to this process.
        runner: its hooks, the same ones in the same order in every process.
        processes: those that decide together.
        lag: batches between telling and acting.
    """

    def __init__(self, preemption: Preemption, runner: HookRunner, processes: Coordinator, *, lag: int) -> None:
        self._preemption, self._runner, self._processes = preemption, runner, processes
        self._lag = lag
        self._due: Sequence[int] = ()
        self._just_fired: dict[int, int] = {}
        self.requested = False

    def flags(self) -> dict[str, Any]:
        """What this process tells with its next batch."""
        return {**self._stop_flag(), "due": self._runner.overdue() if self._processes.index == 0 else []}

    def learn(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Takes in what all processes told with the batch that is next."""
        self._learn_stop(told)
        self._just_fired = {hook: left - 1 for hook, left in self._just_fired.items() if left > 1}
        self._due = [hook for hook in told[0]["due"] if hook not in self._just_fired]

    def look_at_clock(self) -> None:
        """Makes the hooks due whose time has come by the chief's clock."""
        if self._due:
            self._just_fired.update(dict.fromkeys(self._due, self._lag + 1))
            self._runner.make_due(self._due)
            self._due = ()

    def settle(self, run: Any) -> None:
        """Hooks had control: a stop that one of them asked for anywhere is one everywhere."""
        reasons = gather(self._processes, "stop", run.stop_reason)
        reason = next((one for one in reasons if one is not None), None)
        if reason is not None:
            run.request_stop(reason)

    def lead(self, batches: Any) -> None:
        """Lets all that is decided travel with the batches of the training."""
        batches.flags, batches.learn = self.flags, self.learn

    def follow(self, batches: Any) -> None:
        """Lets a signal travel with the batches of an evaluation inside the training too."""
        batches.flags, batches.learn = self._stop_flag, self._learn_stop

    def _stop_flag(self) -> dict[str, Any]:
        stop = f"{self._preemption.reason} in process {self._processes.index}" if self._preemption.requested else None
        return {"stop": stop}

    def _learn_stop(self, told: Sequence[Mapping[str, Any]]) -> None:
        stop = next((one["stop"] for one in told if one["stop"] is not None), None)
        if stop is not None and not self.requested:
            self.requested = True
            self._preemption.request(stop)


def decisions_of(devices: Devices, preemption: Preemption, runner: HookRunner) -> OwnDecisions | SharedDecisions:
    """The decisions of a training call on these devices."""
    if not devices.placement.spans_processes:
        return OwnDecisions(preemption, runner)
    return SharedDecisions(preemption, runner, devices.processes, lag=AHEAD)
