"""Calls hooks in their order, and only when they want control."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from estimator_core._loop.outputs import LazyOutputs, unknown_name
from estimator_core._plugins.discovery import GROUP
from estimator_core.errors import HookError
from estimator_core.hooks import Hook

_log = logging.getLogger("estimator_core")
_VALUES_BUFFER = 256
#: Seconds between two looks at the clocks of hooks: asking them at every step would cost more than some steps do.
_CLOCK_SECS = 0.01


class _Held(NamedTuple):
    """Hooks whose `after_step` has yet to be called, by their places in the order."""

    step: int
    outputs: LazyOutputs
    hooks: list[int]


class HookRunner:
    """The hooks of one run.

    Between the steps they ask for, hooks cost nothing: the loop compares its step with `wake`.

    Args:
        hooks: in call order.
        run: what they see.
    """

    def __init__(self, hooks: Sequence[Any], run: Any) -> None:
        self.hooks = list(hooks)
        self._run = run
        self._begun: list[Any] = []
        self._due: list[float] = []
        self._listening: list[tuple[Any, tuple[str, ...]]] = []
        self._wanted: set[str] = set()
        self._buffer: list[LazyOutputs] = []
        self._clocked: list[int] = []
        self._warned: list[Any] = []
        self._held: list[_Held] = []
        #: The step at which `release` must be called at the latest.
        self.held_until: float = math.inf
        self._look_again = -math.inf
        self.wake: float = math.inf
        self.steps_per_dispatch = 1
        self._ungrouped: float = 0

    def begin(self, hooks: Sequence[Any] | None = None) -> None:
        """Calls `begin` of these hooks (default: all) that have not begun yet."""
        for hook in self.hooks if hooks is None else hooks:
            if not any(hook is begun for begun in self._begun):
                self._begun.append(hook)
                self._call(hook, "begin")

    def restore(self, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Gives every hook the state it had when the checkpoint was written."""
        for name, hook in self._named():
            if name in states:
                self._call(hook, "restore", states[name], with_run=False)

    def states(self) -> dict[str, dict[str, Any]]:
        """The state of every hook, by its stable name; what a hook has not been told yet is told first."""
        self.release()
        self.flush_values()
        states = {name: dict(self._call(hook, "state", with_run=False)) for name, hook in self._named()}
        return {name: state for name, state in states.items() if state}

    def after_create(self) -> None:
        """Calls `after_create` of every hook and asks for their first steps."""
        for hook in self.hooks:
            self._call(hook, "after_create")
        for hook in self.hooks:
            names = tuple(self._call(hook, "values", with_run=False))
            for name in names:
                if name not in self._run.output_names:
                    raise HookError(f"{describe(hook)}: {unknown_name(name, self._run.output_names)}")
            if names:
                self._listening.append((hook, names))
        self._wanted = {name for _, names in self._listening for name in names}
        self._due = [self._ask(hook, self._run.step) for hook in self.hooks]
        self._clocked = [index for index, hook in enumerate(self.hooks) if _overrides(hook, "next_time")]
        self._set_wake()

    def before(self, upto: int) -> None:
        """Calls `before_step` of the hooks due at or before step `upto`."""
        for hook, due in zip(self.hooks, self._due, strict=True):
            if due <= upto:
                self._call(hook, "before_step", self._run.step)

    def look_at_clock(self) -> None:
        """Makes hooks due whose time has come, give or take a hundredth of a second."""
        now = time.monotonic()
        if now >= self._look_again:
            self._look_again = now + _CLOCK_SECS
            self.make_due(self.overdue())

    def overdue(self) -> list[int]:
        """The hooks whose time has come, by their places in the order."""
        now, due = time.monotonic(), list[int]()
        waiting = {index for held in self._held for index in held.hooks}  # these have not been told yet
        for index in self._clocked:
            if index in waiting:
                continue
            at = self._call(self.hooks[index], "next_time", with_run=False)
            if at is not None and now >= at:
                due.append(index)
        return due

    def make_due(self, indices: Sequence[int]) -> None:
        """Makes hooks due at the next step."""
        for index in indices:
            self._due[index] = min(self._due[index], self._run.step + 1)
        if indices:
            self._set_wake()

    @property
    def watches_clock(self) -> bool:
        """Whether any hook waits for a time."""
        return bool(self._clocked)

    @property
    def listens(self) -> bool:
        """Whether any hook wants values of every step."""
        return bool(self._listening)

    def collect(self, outputs: LazyOutputs) -> None:
        """Keeps the outputs of a dispatch for the hooks that want values of every step."""
        self._buffer.append(outputs.only(self._wanted))
        if len(self._buffer) >= _VALUES_BUFFER:
            self.flush_values(keep=2)

    def flush_values(self, keep: int = 0) -> None:
        """Hands collected values over; `keep`: the newest dispatches, which may still be running, wait."""
        ready, self._buffer = self._buffer[: len(self._buffer) - keep], self._buffer[len(self._buffer) - keep :]
        if not ready:
            return
        for hook, names in self._listening:
            for present, run in itertools.groupby(ready, key=lambda part: tuple(n for n in names if n in part)):
                parts = list(run)
                steps = range(parts[0].steps.start, parts[-1].steps.stop)
                if len(present) < len(names):
                    self._warn_of_gap(hook, sorted(set(names) - set(present)), steps.start)
                if present:
                    values = {name: np.concatenate([part.all(name) for part in parts]) for name in present}
                    self._call(hook, "on_values", steps, values)

    def _warn_of_gap(self, hook: Any, missing: Sequence[str], step: int) -> None:
        """A model_fn may give other outputs for another batch shape: said once for each hook."""
        if not any(hook is warned for warned in self._warned):
            self._warned.append(hook)
            _log.warning(
                "%s wants values of every step; step %d gives no %s, which is skipped where it is missing.",
                describe(hook),
                step,
                ", ".join(map(repr, missing)),
            )

    def slack(self) -> float:
        """For how many further steps the `after_step` of the hooks due at the current step may wait: until the next
        hook wants control, and not until the last step, which a hook may ask for when it is told of this one.
        """
        due = self._due_now()
        left = math.inf if self._run.last_step is None else self._run.last_step - self._run.step - 1
        rest = (at for index, at in enumerate(self._due) if index not in due)
        if self._held or left <= 0:
            return 0
        until = min(min(rest, default=math.inf) - self._run.step - 1, left)
        return max(0, min(until, *(self._slack_of(self.hooks[index]) for index in due)))

    def hold(self, outputs: LazyOutputs, slack: float) -> None:
        """Notes what the hooks due at the current step are to see; until `release` they ask for no step.

        Args:
            outputs: of the step.
            slack: what `slack()` gave, or less.
        """
        self.held_until = self._run.step + slack
        due = self._due_now()
        self._held.append(_Held(self._run.step, outputs, due))
        for index in due:
            self._due[index] = math.inf
        self._set_wake()

    def release(self) -> None:
        """Calls `after_step` of the hooks that were held, then `settle` of those that have it."""
        held, self._held, self.held_until = self._held, [], math.inf
        for step, outputs, called in held:
            self.flush_values(keep=sum(part.steps.start > step for part in self._buffer))
            for index in called:
                self._call(self.hooks[index], "after_step", step, outputs)
            for index in called:
                if hasattr(self.hooks[index], "settle"):
                    self._call(self.hooks[index], "settle", step)
            for index in called:
                self._due[index] = max(self._ask(self.hooks[index], step), self._run.step + 1)
        self._set_wake()

    def after(self, outputs: LazyOutputs) -> None:
        """Calls `after_step` of the hooks due at the current step, and of those that were held before."""
        self.hold(outputs, 0)
        self.release()
        if self.wake - self._run.step < self.steps_per_dispatch:
            self._note_small_dispatch(self._run.step)

    def _due_now(self) -> list[int]:
        step = self._run.step
        return [
            index
            for index, hook in enumerate(self.hooks)
            if self._due[index] <= step or getattr(hook, "comes_along", False)
        ]

    def _slack_of(self, hook: Any) -> int:
        # What a class says of its `after_step` does not hold for one that a subclass puts in its place.
        for kind in type(hook).__mro__:
            if "slack" in vars(kind):
                return self._call(hook, "slack", self._run.step, with_run=False) if callable(hook.slack) else 0
            if "after_step" in vars(kind):
                return 0
        return 0

    def before_last_save(self) -> None:
        """Calls `before_last_save` of every hook."""
        self.release()
        self.flush_values()
        for hook in self.hooks:
            self._call(hook, "before_last_save")

    def end(self, error: BaseException | None) -> None:
        """Calls `end` of every hook that has begun, whatever the others do; raises the first error unless one is under
        way.
        """
        failures: list[BaseException] = []
        _collect(failures, self.release)
        if error is None:
            _collect(failures, self.flush_values)
        for hook in [hook for hook in self.hooks if any(hook is begun for begun in self._begun)]:
            _collect(failures, lambda hook=hook: self._call(hook, "end"))
        for failure in failures[0 if error is not None else 1 :]:
            _log.error("A hook failed at the end of the run: %s", failure, exc_info=failure)
        if failures and error is None:
            raise failures[0]

    def _note_small_dispatch(self, step: int) -> None:
        """Says once which hook keeps most steps from running in groups."""
        known = self._ungrouped
        self._ungrouped += self.wake - step
        enough = max(2 * self.steps_per_dispatch, (step - self._run.first_step) / 2)
        if known < enough <= self._ungrouped:
            _log.info(
                "steps_per_dispatch=%d has little effect: %s wants control again after %d steps. Let it look less "
                "often; values of every step can be had without a boundary, see Hook.values.",
                self.steps_per_dispatch,
                describe(self.hooks[self._due.index(self.wake)]),
                self.wake - step,
            )
            self._ungrouped = math.inf

    def _ask(self, hook: Any, step: int) -> float:
        due = self._call(hook, "next_step", step, with_run=False)
        if due is None:
            return math.inf
        if due <= step:
            raise HookError(f"{describe(hook)}: next_step({step}) returned {due}; it must return a later step or None.")
        return due

    def _set_wake(self) -> None:
        self.wake = min(self._due, default=math.inf)

    def _named(self) -> list[tuple[str, Any]]:
        counts: dict[str, int] = {}
        named: list[tuple[str, Any]] = []
        for hook in self.hooks:
            name = getattr(hook, "name", None) or type(hook).__name__
            counts[name] = counts.get(name, 0) + 1
            named.append((name if counts[name] == 1 else f"{name}_{counts[name]}", hook))
        return named

    def _call(self, hook: Any, method: str, *arguments: Any, with_run: bool = True) -> Any:
        try:
            return getattr(hook, method)(self._run, *arguments) if with_run else getattr(hook, method)(*arguments)
        except BaseException as error:
            if not getattr(error, "_estimator_hook_noted", False):
                step = arguments[0] if method == "after_step" else self._run.step  # which may be ahead
                error.add_note(f"in {describe(hook)}, {method}, step {step} of mode {self._run.mode!r}")
                error._estimator_hook_noted = True  # type: ignore[attr-defined]
            raise


def describe(hook: Any) -> str:
    """A hook by class and package, for messages."""
    kind = type(hook)
    return f"hook {kind.__qualname__} from {_package(kind.__module__)}"


def _package(module: str) -> str:
    from importlib import metadata

    top = module.partition(".")[0]
    plugins = (entry for entry in metadata.entry_points(group=GROUP) if entry.module.partition(".")[0] == top)
    distribution = next((entry.dist.name for entry in plugins if entry.dist is not None), None)
    if top == "estimator_core":
        distribution = "estimator-core"
    if distribution is None:  # an editable installation does not say which packages it holds
        distribution = next(iter(metadata.packages_distributions().get(top, [])), None)
    if distribution is None:
        return f"module {module}"
    try:
        return f"{distribution} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return distribution


def _overrides(hook: Any, method: str) -> bool:
    return getattr(type(hook), method, None) is not getattr(Hook, method)


def _collect(failures: list[BaseException], call: Callable[[], Any]) -> None:
    try:
        call()
    except BaseException as failure:
        failures.append(failure)
