"""What several processes decide together, so that all do the same at the same step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from estimator_core._backends import Devices
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._cluster import Processes
from estimator_core._cluster.processes import SaidByEach, chief_says, gather
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._plugins import Plugins
from estimator_core._roles import ROLES
from estimator_core.config import RunConfig
from estimator_core.coordinator import Coordinator
from estimator_core.errors import HookError, PreemptedError
from estimator_core.hooks import Run

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
        if self.stops(run):
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

    def of_chief(self, at: int | None, joins: bool) -> tuple[int | None, bool]:
        """When a hook of the first process alone wants control next."""
        return at, joins

    def stops(self, run: Run) -> bool:
        """Whether a hook has requested a stop."""
        return run.stop_reason is not None

    def watch(self, batches: object, schedule: HookSchedule, run: Run) -> None:
        """Called for the batches of a call. There are no other processes to inform."""

    def begin(self, run: Any) -> None:
        """Called when all processes have the same variables."""

    def agree(self, run: Any, wake: float, waker: Callable[[], str]) -> None:
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


class DifferingHooksError(SaidByEach, HookError):
    """Hooks do not do the same in all processes."""


class SharedHooks(_Decides):
    """What several processes agree on about the hooks of a call.

    The clock of the first process travels with the batches, and takes effect some batches later, at the same batch in
    all. After hooks had control, flags show whether one of them requested a stop, and whether they do the same.

    Args:
        processes: those that decide together.
        flags: the flags of their devices.
        lag: batches between a message and its effect.
    """

    shared = True

    def __init__(self, processes: Coordinator, flags: Flags, *, lag: int) -> None:
        self._processes, self._flags_of_all, self._lag = processes, flags, lag
        self._due: Sequence[int] = ()
        self._just_fired: dict[int, int] = {}
        self._stops = False
        self._version = 0

    def watch(self, batches: Any, schedule: HookSchedule, run: Run) -> None:
        """Sends the chief's clock with the batches, beside what is sent already. So is a stop: a hook may request one
        where no hook has control, as in `on_values`.
        """
        others, learn = batches.flags, batches.learn
        is_chief = self._processes.index == 0

        def flags() -> dict[str, Any]:
            return {**others(), "due": list(schedule.overdue()) if is_chief else [], "reason": run.stop_reason}

        def learn_all(told: Sequence[Mapping[str, Any]]) -> None:
            learn(told)
            self._stop_all(run, [one["reason"] for one in told])
            self._just_fired = {hook: left - 1 for hook, left in self._just_fired.items() if left > 1}
            self._due = [hook for hook in told[0]["due"] if hook not in self._just_fired]

        batches.flags, batches.learn = flags, learn_all

    def overdue(self, look: Callable[[], Sequence[int]]) -> Sequence[int]:
        """The overdue hooks by the chief's clock."""
        due, self._due = self._due, ()
        self._just_fired.update(dict.fromkeys(due, self._lag + 1))
        return due

    def begin(self, run: Any) -> None:
        """Notes which variables all processes have."""
        self._version = run.live.version

    def of_chief(self, at: int | None, joins: bool) -> tuple[int | None, bool]:
        """When a hook of the first process alone wants control next, which that one says: all stop at its steps."""
        at, joins = chief_says(self._processes, "chief-hook", [at, joins])
        return at, joins

    def stops(self, run: Run) -> bool:
        """Whether a hook has requested a stop, and all processes know."""
        return self._stops

    def agree(self, run: Any, wake: float, waker: Callable[[], str]) -> None:
        """Called after hooks had control. A stop that a hook requested in one process applies to all.

        Raises:
            DifferingHooksError: they want control at different steps, or some processes alone replaced variables.
        """
        replaced = run.live.version != self._version
        self.begin(run)
        step = -1 if wake == math.inf else int(wake) % 2**31
        low, high = self._flags_of_all([run.stop_reason is not None, step, replaced])()
        if low[1] != high[1]:
            told = gather(self._processes, "wake", waker())
            raise DifferingHooksError(
                f"At step {run.step} the hooks of the processes do not want control at the same steps: "
                f"{'; '.join(f'process {index}: {what}' for index, what in enumerate(told))}. Every process needs the "
                "same hooks, and next_step must return the same in all. Only training_chief_hooks may want other "
                "steps in the first process."
            )
        if low[2] != high[2]:
            alone = [index for index, did in enumerate(gather(self._processes, "replaced", replaced)) if did]
            raise DifferingHooksError(
                f"At step {run.step} hooks have replaced variables in processes {alone} alone, so the processes would "
                "train different models. A hook that calls run.assign must do so in every process, not in "
                "training_chief_hooks."
            )
        if high[0]:
            self._stop_all(run, gather(self._processes, "stop", run.stop_reason))

    def _stop_all(self, run: Run, reasons: Sequence[str | None]) -> None:
        """Stops this process for the first of the reasons of all, if there is one."""
        if reason := next((one for one in reasons if one is not None), None):
            run.request_stop(reason)
            self._stops = True


class SharedDecisions(SharedHooks):
    """The decisions of several processes that train. A signal to any of them travels with the batches, too.

    Args:
        preemption: notices signals to this process.
        processes, flags, lag: as of `SharedHooks`.
    """

    def __init__(self, preemption: Preemption, processes: Coordinator, flags: Flags, *, lag: int) -> None:
        super().__init__(processes, flags, lag=lag)
        self._preemption = preemption
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether the platform wants a stop of any process."""
        return self._requested

    def watch(self, batches: Any, schedule: HookSchedule, run: Run) -> None:
        """Sends signals, and what hooks want, with the batches of training."""
        self.follow(batches)
        super().watch(batches, schedule, run)

    def give_up(self, error: Exception) -> None:
        """Stops all processes at one batch. Each then waits for its last commit, which raises the error."""
        self._preemption.request(str(error))

    def follow(self, batches: Any) -> None:
        """Sends signals with the batches of an evaluation inside training, too."""
        batches.flags, batches.learn = self._stop_flag, self._learn_stop

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


def hooks_of(devices: Devices) -> NobodyAsks | SharedHooks:
    """What the hooks of an evaluation or of predictions agree on over these devices."""
    if not devices.placement.spans_processes:
        return NOBODY_ASKS
    from estimator_core._loop.shared_feed import AHEAD, step_flags

    return SharedHooks(devices.processes, step_flags(devices.placement.mesh), lag=AHEAD)


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
