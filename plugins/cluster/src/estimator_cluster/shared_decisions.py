"""The decisions that several processes make together, so that all do the same at the same step."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from estimator_cluster.shared_feed import AHEAD, Flags
from estimator_core.agreement import Decisions, SaidByEach, chief_says, gather
from estimator_core.coordinator import Coordinator
from estimator_core.errors import ArgumentError, HookError
from estimator_core.hooks import Run


class Interruption(Protocol):
    """The object that records signals to this process."""

    @property
    def requested(self) -> bool:
        """Whether this process should stop."""
        ...

    @property
    def reason(self) -> str | None:
        """The reason why it should stop."""
        ...

    def request(self, reason: str) -> None:
        """Lets this process stop."""
        ...


class DifferingHooksError(SaidByEach, HookError):
    """The hooks of the processes differ."""


class DifferingProgramsError(SaidByEach, ArgumentError):
    """The training programs of the processes differ."""


class SharedHooks(Decisions):
    """What several processes agree on about the hooks of a call.

    The clock of the first process is sent with the batches, and takes effect some batches later, at the same batch in
    all processes. After hooks had control, flags show whether one of them requested a stop, and whether the processes
    agree.

    Args:
        processes: the processes that decide together.
        flags: the flags of their devices.
    """

    shared = True

    def __init__(self, processes: Coordinator, flags: Flags) -> None:
        super().__init__()
        self._processes, self._flags_of_all = processes, flags
        self._due: Sequence[int] = ()
        self._just_fired: dict[int, int] = {}
        self._stops = False
        self._version = 0

    def watch(self, batches: Any, overdue: Callable[[], Sequence[int]], run: Run) -> None:
        """Sends the chief's clock with the batches, beside what is sent already.

        So is a stop: a hook may request one where no hook has control, as in `on_values`.
        """
        others, learn = batches.flags, batches.learn
        is_chief = self._processes.index == 0

        def flags() -> dict[str, Any]:
            return {**others(), "due": list(overdue()) if is_chief else [], "reason": run.stop_reason}

        def learn_all(told: Sequence[Mapping[str, Any]]) -> None:
            learn(told)
            self._stop_all(run, [one["reason"] for one in told])
            self._just_fired = {hook: left - 1 for hook, left in self._just_fired.items() if left > 1}
            self._due = [hook for hook in told[0]["due"] if hook not in self._just_fired]

        batches.flags, batches.learn = flags, learn_all

    def overdue(self, look: Callable[[], Sequence[int]]) -> Sequence[int]:
        """Returns the overdue hooks by the chief's clock."""
        due, self._due = self._due, ()
        self._just_fired.update(dict.fromkeys(due, AHEAD + 1))
        return due

    def begin(self, run: Any) -> None:
        """Records the version of the variables that all processes have."""
        self._version = run.live.version

    def of_chief(self, at: int | None, joins: bool) -> tuple[int | None, bool]:
        """Returns the step at which a hook of the first process alone needs control next.

        That process sends it, and all stop there.
        """
        at, joins = chief_says(self._processes, "chief-hook", [at, joins])
        return at, joins

    def stops(self, run: Run) -> bool:
        """Returns whether a hook has requested a stop, and all processes know it."""
        return self._stops

    def agree(self, run: Any, wake: float, waker: Callable[[], str]) -> None:
        """Called after hooks had control. A stop that a hook requested in one process applies to all.

        Raises:
            DifferingHooksError: the hooks need control at different steps, or only some processes replaced variables.
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
                f"At step {run.step} hooks have replaced variables only in processes {alone}, so the processes would "
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
    """The decisions of several processes that train. A signal to any of them is also sent with the batches.

    Args:
        preemption: the object that records signals to this process.
        processes, flags: see `SharedHooks`.
    """

    def __init__(self, preemption: Interruption, processes: Coordinator, flags: Flags) -> None:
        super().__init__(processes, flags)
        self._preemption = preemption
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether the platform requests a stop of any process."""
        return self._requested

    def watch(self, batches: Any, overdue: Callable[[], Sequence[int]], run: Run) -> None:
        """Sends signals, and what hooks want, with the batches of training."""
        self.follow(batches)
        super().watch(batches, overdue, run)

    def compare(self, program: Callable[[], str]) -> None:
        """Compares the training programs of the processes. Different ones would train different models, or never end.

        Raises:
            DifferingProgramsError: the programs differ.
        """
        told = gather(self._processes, "program", hashlib.sha256(program().encode()).hexdigest())
        others = [index for index, digest in enumerate(told) if digest != told[0]]
        if others:
            raise DifferingProgramsError(
                f"The training programs of processes {others} differ from that of process 0. All processes must have "
                "the same model_fn with the same params and optimizer, the same RunConfig, and the same shapes of "
                "batches. A number that each process draws or reads itself differs too, as does the order of a set."
            )

    def give_up(self, error: Exception) -> None:
        """Stops all processes at one batch. Each then waits for its last commit, which raises the error."""
        self._preemption.request(str(error))

    def follow(self, batches: Any) -> None:
        """Sends signals also with the batches of an evaluation inside training."""
        batches.flags, batches.learn = self._stop_flag, self._learn_stop

    def _stop_flag(self) -> dict[str, Any]:
        stop = f"{self._preemption.reason} in process {self._processes.index}" if self._preemption.requested else None
        return {"stop": stop}

    def _learn_stop(self, told: Sequence[Mapping[str, Any]]) -> None:
        stop = next((one["stop"] for one in told if one["stop"] is not None), None)
        if stop is not None and not self._requested:
            self._requested = True
            self._preemption.request(stop)
