"""The hooks of one call: the default ones, their order, the calls to them, and the values that they follow."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from estimator_core._builtin_hooks.history import History, HistoryRecorderHook
from estimator_core._builtin_hooks.hook_parts import unknown_output
from estimator_core._hook_members import place_of, refuse_shadowed
from estimator_core._loop.dispatch import LazyOutputs
from estimator_core._plugins import Plugins
from estimator_core._plugins.discovery import describe, note_origin
from estimator_core._plugins.in_use import component_of, require_components
from estimator_core.config import RunConfig
from estimator_core.errors import HookError
from estimator_core.hooks import Hook

_log = logging.getLogger("estimator_core")


def default_hooks(config: RunConfig, plugins: Plugins, history: History) -> tuple[list[Hook], list[Hook]]:
    """Creates the default hooks of one training call, in call order.

    The first ones are called before the hooks of plugins and of the user: step counter, summaries. The others are
    called after them: NaN check, log, history.

    Args:
        config: the RunConfig, which names the component for each role (`components`), and has the cadence. A cadence of
            None or 0 leaves the role empty.
        plugins: the registry that provides components.
        history: the history that is filled at the cadence of the log.

    Raises:
        PluginLookupError: a named component does not exist, of any role.
        PluginError: a component cannot be made, or is not a hook.
    """

    def made(role: str, **arguments: object) -> list[Hook]:
        hook: Hook | None = component_of(role, config.components, plugins, **arguments)
        return [] if hook is None else [hook]

    require_components(config.components, plugins)
    if "export_check" in config.components:
        component_of("export_check", config.components, plugins)  # refused before the first step
    every, save_steps = config.log_step_count_steps, config.save_summary_steps
    counter = made("step_counter", every_n_steps=every) if every else []
    summaries = made("summary_saver", save_steps=save_steps) if save_steps else []
    log = made("log", tensors={"loss": "loss", "step": "step"}, every_n_iter=every) if every else []
    recorder = [HistoryRecorderHook(history, every)] if every else []
    return [*counter, *summaries], [*made("nan_tensor"), *log, *recorder]


@dataclass(frozen=True, kw_only=True)
class HookOrder:
    """The hooks of one call, created once. The hooks of the EstimatorSpec are added after discovery.

    Attributes:
        first: the hooks for evaluations of a save, and between saves.
        given: the hooks of plugins and of the call, between the default ones.
        last: the hook that saves.
    """

    first: Sequence[Hook]
    given: Sequence[Hook]
    last: Sequence[Hook]

    def with_spec(self, chief_hooks: Sequence[object] = (), spec_hooks: Sequence[object] = ()) -> list[Any]:
        """Returns all hooks, including those of the EstimatorSpec for the chief and for every process."""
        return [*self.first, *chief_hooks, *self.given, *spec_hooks, *self.last]


def in_order(hooks: Sequence[object]) -> list[Any]:
    """Sorts the hooks of plugins and of a call by their `place`. Hooks of one place keep their order.

    Raises:
        HookError: there is no such place.

    Example:
        >>> class Last(Hook):
        ...     place = "late"
        >>> [type(hook).__name__ for hook in in_order([Last(), Hook()])]
        ['Hook', 'Last']
    """
    return sorted(hooks, key=lambda hook: place_of(hook, describe))


class HookCalls:
    """Calls hooks in their order. An error names the hook, its package and the step.

    Args:
        hooks: the hooks in call order. A hook that occurs twice is called once, at its first place.
        run: the run that hooks see. Its `followed` has the names that `run.follow` recorded. Its `hook_seconds`
            receives the times of the hooks.
        busy: the hooks with state in this call and in those around it, by id. `begin` adds those of this call, and
            `end` removes them.

    Attributes:
        hooks: the hooks in call order. `add` and `arrange` change it until the first batch is known.
    """

    def __init__(self, hooks: Sequence[Hook], run: Any, busy: dict[int, Hook] | None = None) -> None:
        self.hooks = each_once(hooks)
        self._run = run
        self._busy = {} if busy is None else busy
        self._seconds: dict[str, float] = run.hook_seconds
        self._begun: dict[int, Hook] = {}
        self._followed: dict[int, dict[str, None]] = {}

    def add(self, hooks: Iterable[Hook]) -> None:
        """Appends hooks that are not in the list yet."""
        self.arrange([*self.hooks, *hooks])

    def arrange(self, hooks: Sequence[Hook]) -> None:
        """Replaces the list with these hooks, in this order."""
        self.hooks = each_once(hooks)

    def begin(self) -> None:
        """Calls `begin` of the hooks that have not begun yet.

        Raises:
            HookError: the call around this one uses a hook with state too.
        """
        for hook in self.hooks:
            if id(hook) not in self._begun:
                refuse_shadowed(hook, Hook, describe)
                if id(hook) in self._busy:
                    raise HookError(
                        f"{describe(hook)}: the call around this one has it too, but its state belongs to one call. "
                        "Give each call its own hook."
                    )
                if has_state(hook):
                    self._busy[id(hook)] = hook
                self._begun[id(hook)] = hook
                self._noting(hook, "begin")

    def restore(self, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Restores the state of every hook from a checkpoint."""
        for name, hook in self._named():
            if name in states:
                self.ask(hook, "restore", states[name])

    def after_create(self) -> list[tuple[Hook, list[str]]]:
        """Calls `after_create` of every hook. Returns the outputs that each hook follows.

        Raises:
            HookError: the step does not produce an output.
        """
        for hook in self.hooks:
            self._noting(hook, "after_create")
        followers = [(hook, [*self._followed[id(hook)]]) for hook in self.hooks if id(hook) in self._followed]
        for hook, names in followers:
            for name in names:
                if name not in self._run.output_names:
                    raise HookError(f"{describe(hook)}: {unknown_output(name, self._run.output_names)}")
        return followers

    def before_last_save(self) -> None:
        """Calls `before_last_save` of every hook."""
        for hook in self.hooks:
            self.tell(hook, "before_last_save")

    def states(self) -> dict[str, dict[str, Any]]:
        """Returns the state of every hook that has one, by its stable name."""
        states: dict[str, dict[str, Any]] = {}
        for name, hook in self._named():
            state: object = self.ask(hook, "state")
            if not isinstance(state, Mapping):
                error = HookError(f"{describe(hook)}: state() returned {state!r}; it must return a mapping.")
                note_origin(error, f"in {describe(hook)}, state, step {self._run.step} of mode {self._run.mode!r}")
                raise error
            states[name] = dict(cast("Mapping[str, Any]", state))
        return {name: state for name, state in states.items() if state}

    def end(self, error: BaseException | None, first: Sequence[Callable[[], None]] = ()) -> None:
        """Calls `end` of every hook that has begun, even if others fail.

        Raises the first error, unless an error already ended the call.

        Args:
            error: the error that ended the call, or None.
            first: functions to call first.
        """
        failures: list[BaseException] = []
        begun = [hook for hook in self.hooks if id(hook) in self._begun]
        for call in (*first, *(lambda hook=hook: self.tell(hook, "end") for hook in begun)):
            try:
                call()
            except BaseException as failure:
                failures.append(failure)
        for hook in begun:
            self._busy.pop(id(hook), None)
        for failure in failures[0 if error is not None else 1 :]:
            _log.error("A hook failed at the end of the run: %s", failure, exc_info=failure)
        if failures and error is None:
            raise failures[0]

    def tell(self, hook: Hook, method: str, *arguments: Any) -> Any:
        """Calls a method that receives the run."""
        return self.ask(hook, method, self._run, *arguments)

    def ask(self, hook: Hook, method: str, *arguments: Any) -> Any:
        """Calls a method, and counts its seconds."""
        began = time.perf_counter()
        try:
            return getattr(hook, method)(*arguments)
        except BaseException as error:
            step = arguments[1] if method == "after_step" else self._run.step  # the step of the run may be ahead
            note_origin(error, f"in {describe(hook)}, {method}, step {step} of mode {self._run.mode!r}")
            raise
        finally:
            name = type(hook).__name__
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - began

    def _noting(self, hook: Hook, method: str) -> None:
        """Calls a method in which the hook may declare the outputs that it follows."""
        known = len(self._run.followed)
        self.tell(hook, method)
        if new := self._run.followed[known:]:
            self._followed.setdefault(id(hook), {}).update(dict.fromkeys(new))

    def _named(self) -> Generator[tuple[str, Hook]]:
        counts: dict[str, int] = {}
        for hook in self.hooks:
            name = getattr(hook, "name", None) or type(hook).__name__
            counts[name] = counts.get(name, 0) + 1
            yield name if counts[name] == 1 else f"{name}_{counts[name]}", hook


def has_state(hook: Hook) -> bool:
    """Returns whether a hook defines `state`, so that it serves one call at a time."""
    return getattr(type(hook), "state", Hook.state) is not Hook.state


def each_once(hooks: Iterable[Hook]) -> list[Hook]:
    """Returns the hooks in their order, without repetitions of an object.

    Example:
        >>> hook = Hook()
        >>> len(each_once([hook, Hook(), hook]))
        2
    """
    return list({id(hook): hook for hook in hooks}.values())


#: The number of dispatches that are kept before their values are delivered, and the limit of their bytes.
_BUFFER, _BYTES = 256, 1 << 26


class Streams:
    """Stores the outputs that hooks follow, and delivers them in bulk and in order.

    Args:
        followers: pairs of a hook and the names of the outputs that it follows.
        calls: the object that calls the hooks.
    """

    def __init__(self, followers: Sequence[tuple[Any, Sequence[str]]], calls: HookCalls) -> None:
        self._followers, self._calls = list(followers), calls
        self._wanted = {name for _, names in followers for name in names}
        self._buffer: list[LazyOutputs] = []
        self._most = 0  # unknown until the first dispatch shows the size of its outputs
        self._warned: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._followers)

    def add(self, outputs: LazyOutputs) -> None:
        """Stores the outputs of a dispatch."""
        self._buffer.append(outputs.only(self._wanted))
        if not self._most:
            self._most = min(_BUFFER, max(4, _BYTES // (self._buffer[0].nbytes or 1)))
        if len(self._buffer) >= self._most:
            self.hand_over(keep=2)  # the newest may still be running

    def hand_over_to(self, step: int) -> None:
        """Delivers the values of the dispatches up to a step."""
        self.hand_over(keep=sum(part.steps.start > step for part in self._buffer))

    def hand_over(self, keep: int = 0) -> None:
        """Delivers the collected values, except those of the newest `keep` dispatches."""
        ready, self._buffer = self._buffer[: len(self._buffer) - keep], self._buffer[len(self._buffer) - keep :]
        if not ready:
            return
        for hook, names in self._followers:
            for shapes, run in itertools.groupby(ready, key=lambda part: part.shapes(names)):
                present, parts = list(shapes), list(run)
                steps = range(parts[0].steps.start, parts[-1].steps.stop)
                if len(present) < len(names):
                    self._warn_of_gap(hook, sorted(set(names) - set(present)), steps.start)
                if present:
                    values = {name: np.concatenate([part.all(name) for part in parts]) for name in present}
                    self._calls.tell(hook, "on_values", steps, values)

    def _warn_of_gap(self, hook: Any, missing: Sequence[str], step: int) -> None:
        """Warns once per hook, because a model_fn may return other outputs for another batch shape."""
        if not any(hook is warned for warned in self._warned):
            self._warned.append(hook)
            _log.warning(
                "%s wants values of every step; step %d has no output %s. Steps without it are skipped.",
                describe(hook),
                step,
                ", ".join(map(repr, missing)),
            )
