"""Decides when hooks receive control."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import index as as_int
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from estimator_core._loop.dispatch import Dispatch, LazyOutputs
from estimator_core._loop.hook_calls import HookCalls, Streams
from estimator_core._loop.time_spent import HOOKS, STEP, TimeSpent
from estimator_core._plugins.discovery import describe
from estimator_core.errors import HookError
from estimator_core.hooks import Hook, Wake

if TYPE_CHECKING:
    from estimator_core._loop.agreement import Decisions
    from estimator_core._loop.device_state import DeviceState

_log = logging.getLogger("estimator_core")
NEVER = math.inf
#: The seconds between two checks of the work that hooks have begun: commits in progress and numbers that wait to be
#: written.
_LOOK_SECS = 0.01


class Source(Protocol):
    """What the schedule needs from the batches, see `Batches`. The conformance kit has its own."""

    k: int
    alone: bool
    quick: bool

    def prepare(self, room: float) -> None:
        """Draws the next group while the device is busy."""
        ...


class _Held(NamedTuple):
    """Hooks whose `after_step` is not called yet, by their places in the order."""

    step: int
    outputs: LazyOutputs
    values: Mapping[str, Any]
    hooks: list[int]


class HookSchedule:
    """Calls hooks when they need control. Between these steps, they cost one or two comparisons.

    After a dispatch, only the number `attention` is compared, because nothing happens before that step. It is the step
    of the next hook, or minus infinity while outputs are followed or hooks are held. While written summaries wait, the
    clock is also compared.

    Args:
        calls: the hooks, which have begun.
        run: the run that they see.
        batches: the batches of the loop.
        account: the account that receives the seconds of hooks.
        agreement: the agreement, which decides for all processes.
        alone_at_wake: whether a dispatch that a hook needs to see has one batch, as in evaluation and prediction.
        look_after: a function that handles waiting summaries and commits. It is called at the start, after hooks had
            control, and then after each dispatch until it returns that nothing is waiting.
        is_there: a function that returns whether the device has computed the values of a dispatch.
    """

    def __init__(
        self,
        calls: HookCalls,
        run: Any,
        *,
        batches: Source,
        account: TimeSpent,
        agreement: Decisions,
        alone_at_wake: bool = False,
        look_after: Callable[[], bool] | None = None,
        is_there: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> None:
        self._calls, self._run, self._batches, self._account = calls, run, batches, account
        self._agreement = agreement
        self._state: DeviceState | None = None
        self._look_after, self._is_there = look_after, is_there or _loss_is_there
        self._waiting = partial(account.on, STEP)
        self._chief_hooks: Sequence[Hook] = ()
        self._until: float = NEVER if run.last_step is None else run.last_step
        self._alone_at_wake = alone_at_wake
        self._may_hold = batches.alone and not alone_at_wake
        self._hooks: list[Hook] = []
        self._streams = Streams((), calls)
        # For each hook, by its place in the order: the step and time at which it needs control, and how.
        self._due: list[float] = []
        self._times: list[float] = []
        self._within: list[int] = []
        self._joins: list[bool] = []
        self._may_wait: list[bool] = []
        self._held: list[_Held] = []
        self._held_until: float = NEVER
        self._written, self._next_look = False, 0.0
        # Derived from these lists by `_set`. Three steps: that of the next hook, the one before which `after` does
        # nothing, and the one before which the loop may group. `_alarm` is the earliest time that a hook has named.
        self._wake = self._attention = self._stop = self._alarm = NEVER
        # The number of steps that were not grouped because of hooks; infinite once this was logged.
        self._ungrouped: float = 0

    def start(self, state: DeviceState | None = None, chief_hooks: Sequence[Hook] = ()) -> None:
        """Calls `after_create` of every hook and asks for their first steps.

        Args:
            state: the state under training, which is the source of the output `first_bad_step`.
            chief_hooks: the hooks that run only in the first process. In the others, the hooks in their places.
        """
        self._state, self._chief_hooks = state, chief_hooks
        self._agreement.begin(self._run)
        self._streams = Streams(self._calls.after_create(), self._calls)
        self._hooks = hooks = self._calls.hooks
        self._may_wait = [_defines_its_lateness(type(hook)) for hook in hooks]
        self._due, self._times = [NEVER] * len(hooks), [NEVER] * len(hooks)
        self._within, self._joins = [0] * len(hooks), [False] * len(hooks)
        for place in range(len(hooks)):
            self._ask(place, self._run.step)
        self._written = self._look_after is not None
        self._set()

    # What the loops call

    def agree(self) -> None:
        """Makes a stop request of one process apply to all."""
        self._agreement.agree(self._run, self._wake, self._waker)

    def stops(self) -> bool:
        """Returns whether a hook has requested a stop, of which all processes know."""
        return self._agreement.stops(self._run)

    def room(self) -> float:
        """Returns the number of steps until a hook needs control."""
        if self._alarm < NEVER:
            self._make_due(self._agreement.overdue(self.overdue))
        return self._stop - self._run.step

    def before(self, dispatch: Dispatch) -> None:
        """Calls `before_step` of the hooks that need to see this dispatch."""
        run = self._run
        upto = run.step + dispatch[3]  # the steps: an index is faster than a name
        if upto < self._wake:
            return
        run.batch, run.batch_size = dispatch.last, dispatch.last.size
        outer = self._account.change(HOOKS)
        try:
            for hook, due in zip(self._hooks, self._due, strict=True):
                if due <= upto:
                    self._calls.tell(hook, "before_step", run.step)
        finally:
            self._account.change(outer)

    def after(self, dispatch: Dispatch, values: Any) -> None:
        """Calls `after_step` of the due hooks, now or as late as all of them allow."""
        self.look()
        if self._run.step >= self._attention:
            self._attend(dispatch[3], values)

    def look(self) -> None:
        """Handles work that hooks have begun, but not at each step, because that would cost fast training more than the
        loop.
        """
        if self._written and (now := time.monotonic()) >= self._next_look:
            self._next_look = now + _LOOK_SECS
            self._written = not (self._look_after is None or self._look_after())

    def unobserved_until(self) -> tuple[float, float]:
        """Returns the step and the time of `time.monotonic` before which no method of this object must be called."""
        if self._attention == -NEVER or self._agreement.shared:
            return -NEVER, NEVER
        return min(self._wake - 1, self._until), min(self._alarm, self._next_look if self._written else NEVER)

    def catch_up(self) -> None:
        """Calls the held hooks."""
        if self._held:
            self._release()

    # What a call needs

    def overdue(self) -> Sequence[int]:
        """Returns the overdue hooks by the clock of this process, as places in the order."""
        now = time.monotonic()
        return [place for place, at in enumerate(self._times) if at <= now] if now >= self._alarm else ()

    def states(self) -> dict[str, dict[str, Any]]:
        """Returns the state of every hook. Held calls and values are delivered first."""
        self.catch_up()
        self._streams.hand_over()
        return self._calls.states()

    def before_last_save(self) -> None:
        """Calls `before_last_save` of every hook, after each has seen every step."""
        self.catch_up()
        self._streams.hand_over()
        self._calls.before_last_save()

    def end(self, error: BaseException | None) -> None:
        """Calls `end` of every hook, after each has seen every step, unless an error ended the call."""
        self._calls.end(error, (self.catch_up,) if error is not None else (self.catch_up, self._streams.hand_over))

    # Private methods

    def _attend(self, steps: int, values: Any) -> None:
        """Notes the values of a dispatch for the hooks that are due or follow outputs, and calls held hooks in time.

        The due hooks are held: those that may be called later see the values while the device computes the next
        dispatches. If one of them cannot wait, all are called now, in their order.
        """
        run, batches = self._run, self._batches
        due = self._wake <= run.step
        if due or self._streams:
            hooks = self._due_now() if due else []
            slack = self._slack(hooks) if due and self._may_hold and batches.quick else 0
            outputs = self._outputs(values, steps, later=slack >= steps)
            if self._streams:
                self._streams.add(outputs)
            if due:
                if slack < steps and not self._alone_at_wake:  # now, because the device is busy
                    batches.prepare(self._until - run.step)
                self._hold(outputs, values, hooks, slack)
                if slack < steps:
                    self._release()
                    self._note_small_dispatch()
        if self._held and (run.step + batches.k > self._held_until or self._is_there(self._held[-1].values)):
            self._release()

    def _outputs(self, values: Any, steps: int, *, later: bool) -> LazyOutputs:
        step, extras = self._run.step, {}
        if self._state is not None:
            bad = self._state.first_bad_step_so_far() if later else self._state.first_bad_step
            extras = {"first_bad_step": bad}
        return LazyOutputs(
            values if isinstance(values, Mapping) else {"predictions": values},
            steps=range(step - steps + 1, step + 1),
            stacked=steps > 1,
            extras=extras,
            waiting=self._waiting,
        )

    def _due_now(self) -> list[int]:
        step = self._run.step
        return [place for place, due in enumerate(self._due) if due <= step or self._joins[place]]

    def _slack(self, due: Sequence[int]) -> float:
        """Returns the number of further steps for which `after_step` of the due hooks may wait.

        They wait at most until the next hook needs control. They do not wait until the last step, because a hook may
        request it in its `after_step`.
        """
        step = self._run.step
        left = self._until - step - 1
        if self._held or left <= 0:
            return 0
        rest = min((at for place, at in enumerate(self._due) if place not in due), default=NEVER)
        return max(0, min(rest - step - 1, left, *(self._within[place] for place in due)))

    def _hold(self, outputs: LazyOutputs, values: Any, hooks: list[int], slack: float) -> None:
        """Records the values that the due hooks will see. They are not due again until `_release`."""
        self._held_until = self._run.step + slack
        self._held.append(_Held(self._run.step, outputs, values, hooks))
        for place in hooks:
            self._due[place] = self._times[place] = NEVER
        self._set()

    def _release(self) -> None:
        """Calls `after_step` of the held hooks, in order, and requests the next step of each."""
        outer = self._account.change(HOOKS)
        try:
            held, self._held, self._held_until = self._held, [], NEVER
            for step, outputs, _, hooks in held:
                self._streams.hand_over_to(step)
                for place in hooks:
                    self._calls.tell(self._hooks[place], "after_step", step, outputs)
                for place in hooks:
                    self._ask(place, step)
            self._written = self._look_after is not None
            self._set()
            self.agree()
        finally:
            self._account.change(outer)

    def _ask(self, place: int, step: int) -> None:
        """Asks a hook for its next step, and records the answer."""
        hook = self._hooks[place]
        wanted = self._calls.ask(hook, "next_step", step)
        within, joins, at, seconds = 0, False, wanted, NEVER
        if isinstance(wanted, Wake):
            within, joins, at = wanted.within, wanted.joins, wanted.step
            seconds = NEVER if wanted.time is None else wanted.time
        if at is not None:
            try:
                at = as_int(at)
            except TypeError:
                raise HookError(
                    f"{describe(hook)}: next_step({step}) returned {wanted!r}; it must return a later step, a Wake or "
                    "None."
                ) from None
            if at <= step:
                raise HookError(
                    f"{describe(hook)}: next_step({step}) returned {at}; it must return a later step or None."
                )
        if any(hook is one for one in self._chief_hooks):
            at, joins = self._agreement.of_chief(at, joins)
        self._due[place] = NEVER if at is None else max(at, self._run.step + 1)
        self._times[place] = seconds
        self._within[place] = within if self._may_wait[place] else 0
        self._joins[place] = joins

    def _make_due(self, places: Sequence[int]) -> None:
        """Makes hooks due at the next step."""
        for place in places:
            self._due[place] = min(self._due[place], self._run.step + 1)
            self._times[place] = NEVER
        if places:
            self._set()

    def _set(self) -> None:
        """Derives the numbers that the loop compares. With other processes, it always looks for overdue hooks."""
        self._wake = min(self._due, default=NEVER)
        self._alarm = -NEVER if self._agreement.shared else min(self._times, default=NEVER)
        self._attention = -NEVER if self._held or self._streams else self._wake
        if self._alone_at_wake:  # followed outputs are also seen batch by batch
            self._stop = -NEVER if self._streams else min(self._wake - 1, self._until)
        else:
            self._stop = min(self._wake, self._until)

    def _waker(self) -> str:
        """Describes the hook that needs control next, for messages."""
        if self._wake == NEVER:
            return "no hook wants it again"
        return f"{describe(self._hooks[self._due.index(self._wake)])} at step {self._wake:.0f}"

    def _note_small_dispatch(self) -> None:
        """Logs once which hook prevents most steps from running in groups."""
        k, step = self._batches.k, self._run.step
        if self._wake - step >= k:
            return
        known = self._ungrouped
        self._ungrouped += self._wake - step
        enough = max(2 * k, (step - self._run.first_step) / 2)
        if known < enough <= self._ungrouped:
            _log.info(
                "steps_per_dispatch=%d has little effect: %s wants control again after %d steps. Let it run less "
                "often, or use Run.follow, which delivers the values of every step without interrupting a dispatch.",
                k,
                describe(self._hooks[self._due.index(self._wake)]),
                self._wake - step,
            )
            self._ungrouped = math.inf


def _loss_is_there(values: Mapping[str, Any]) -> bool:
    return values["loss"].is_ready()


def _defines_its_lateness(kind: type[Any]) -> bool:
    """Returns whether a class itself defines how late it may be called.

    Its answer does not apply to an `after_step` of a subclass.
    """
    for ancestor in kind.__mro__:
        if "next_step" in vars(ancestor):
            return True
        if "after_step" in vars(ancestor):
            return False
    return False
