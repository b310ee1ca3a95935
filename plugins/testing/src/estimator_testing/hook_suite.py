"""The suite for hooks."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import sys
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from estimator_core.hooks import Hook, Wake
from estimator_core.modes import ModeKeys
from estimator_testing.fake_run import FakeRun, RecordedSummaries
from estimator_testing.faults import InjectedError, Unreadable
from estimator_testing.hook_driver import drive
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.step_clock import StepClock
from estimator_testing.suite import Suite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from estimator_core.hooks import Run

STEPS = 24
_NOON = 1_700_000_000.0


class HookSuite(Suite):
    """Proves that a hook keeps its promises to the loop and to a resumed run. Subclass it and implement `make`.

    Example:
        >>> class TestMyHook(HookSuite):
        ...     def make(self):
        ...         return Hook()
    """

    #: The modes of `ModeKeys` in which it takes part. It need not work in others.
    modes: ClassVar[tuple[str, ...]] = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
    #: Keys of the state that each new run draws and a resumed run keeps, such as a run id.
    own_keys: ClassVar[frozenset[str]] = frozenset()
    #: Tags of summaries that each call measures from its own start, such as rates. A resumed call has other points.
    measured: ClassVar[frozenset[str]] = frozenset()
    #: The most milliseconds of the processor per step on average, if outputs are available at once.
    most_ms_a_step: ClassVar[float] = 50.0
    #: Whether the hook hides failures to write summaries, and logs them.
    forgives_writing: ClassVar[bool] = False
    #: Whether the hook ends runs for its own reason, and reads outputs only to report them.
    reports_only: ClassVar[bool] = False

    def make(self) -> Hook:
        """Returns a new hook. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def outputs(self) -> Mapping[str, Callable[[int], Any]]:
        """Returns the outputs that the hook sees: value by global step. Override it if the hook reads others."""
        return {"loss": lambda step: np.float32(1.0 / (1 + step))}

    def test_is_a_fresh_hook(self) -> None:
        """`make` returns a Hook, a new one each time."""
        hook = self.make()
        assert isinstance(hook, Hook), f"{hook!r} is not a Hook"
        assert self.make() is not hook

    def test_begins_and_ends_without_a_step(self) -> None:
        """It survives a run without a step, and a run that ends before its state is ready."""
        self._drive(self.make(), steps=0)
        hook, run = self.make(), FakeRun()
        hook.begin(run)
        hook.end(run)

    def test_ends_after_a_failure(self) -> None:
        """`end` works after an exception in the middle of a run."""
        hook = self.make()
        failures: list[Exception] = []

        def watched(run: Run) -> None:
            try:
                type(hook).end(hook, run)
            except Exception as error:
                failures.append(error)

        hook.end = watched
        with pytest.raises(RuntimeError, match="the loop fails at step 5"):
            self._drive(hook, steps=STEPS, fail_at=5)
        assert not failures, f"end raised {failures[0]!r} after the run had failed"

    def test_serves_a_second_run(self) -> None:
        """The object can be used for another run, which starts where the first ended."""
        hook = self.make()
        run = self._drive(hook, steps=5)
        self._drive(hook, steps=5, run=FakeRun(step=run.step))

    def test_next_step_is_ahead(self) -> None:
        """`next_step(step)` is None, an int after `step` or a `Wake`, at every moment of a run."""
        hook = self.make()

        def watched(step: int) -> int | Wake | None:
            wanted = type(hook).next_step(hook, step)
            at = wanted.step if isinstance(wanted, Wake) else wanted
            valid = at is None or (isinstance(at, int) and at > step)
            assert valid, f"next_step({step}) is {wanted!r}; it must be None, an int greater than {step}, or a Wake"
            return wanted

        hook.next_step = watched
        self._drive(hook, steps=STEPS)

    def test_asking_changes_nothing(self) -> None:
        """A second call of `next_step` returns the same."""
        hook = self.make()
        self._drive(hook, steps=7)
        first, second = hook.next_step(7), hook.next_step(7)
        if not (isinstance(first, Wake) and isinstance(second, Wake)):
            assert first == second
            return
        assert (first.step, first.within, first.joins) == (second.step, second.within, second.joins)
        assert first.time is None or isinstance(first.time, float)
        assert (first.time is None) == (second.time is None)

    def test_state_can_be_saved(self) -> None:
        """The state is a mapping of JSON values and numpy arrays."""
        hook = self.make()
        self._drive(hook, steps=5)
        for key, value in self._state(hook).items():
            assert isinstance(key, str), f"state key {key!r} is not a string"
            if not isinstance(value, np.ndarray):
                assert json.loads(json.dumps(value)) == value, f"state {key!r} is {value!r}, which JSON does not keep"

    def test_state_is_a_copy(self) -> None:
        """The result of `state()` does not change while the run continues, because it is written in the background."""
        hook = self.make()
        run = self._drive(hook, steps=5)
        state = self._state(hook)
        before = copy.deepcopy(dict(state))
        self._drive(hook, steps=5, run=FakeRun(step=run.step))
        assert_same_state(state, before, "the state returned at step 5 changed in later steps")

    def test_state_comes_back(self) -> None:
        """After `restore(state)`, a fresh hook returns that state again."""
        hook = self.make()
        self._drive(hook, steps=5)
        state = _through_json(self._state(hook))
        fresh = self.make()
        self._drive(fresh, steps=0, run=FakeRun(step=5), resume=[state])
        assert_same_state(self._state(fresh), state, "a hook that restored a state has another one")

    def test_resume_is_seamless(self) -> None:
        """A run that is interrupted and resumed leaves the same state as an uninterrupted one."""
        straight = self.make()
        self._drive(straight, steps=STEPS)
        for at in (1, STEPS // 2):
            first, second = self.make(), self.make()
            run = self._drive(first, steps=at)
            if run.stop_reason is not None:
                continue  # the hook itself ended the run, so there is nothing to resume
            resume = [_through_json(self._state(first))]
            self._drive(second, steps=STEPS - at, run=FakeRun(step=run.step), resume=resume)
            self._same(
                self._state(second), self._state(straight), f"resumed at step {at}, the state at the end differs"
            )
            for key in self.own_keys:
                assert self._state(second)[key] == self._state(first)[key], (
                    f"resumed at step {at}, it has another {key!r}"
                )

    def test_resume_has_the_same_effects(self) -> None:
        """Resumed from any state, it writes the same further points and stops at the same step for the same reason,
        whether the outputs fall or vary.
        """
        for course in (_as_it_is, _uneven):
            outputs = {name: course(function) for name, function in self.outputs().items()}
            saved: dict[int, dict[str, dict[str, Any]]] = {}
            straight = self._drive(self.make(), steps=STEPS, outputs=outputs, saved=saved)
            for at, states in saved.items():
                if at == straight.step:
                    break  # the run is over
                resume, run = [_through_json(next(iter(states.values()), {}))], FakeRun(step=at)
                self._drive(self.make(), steps=STEPS - at, run=run, resume=resume, outputs=outputs)
                self._same_effects(run, straight, f"resumed at step {at}", after=at)

    def test_the_same_run_has_the_same_effects(self) -> None:
        """In every run, it writes the same points, stops at the same step and ends in the same state. Objects share no
        observations.
        """
        expected, state = self._run_fresh()
        for _ in range(2):
            run, again = self._run_fresh()
            self._same_effects(run, expected, "in an identical run")
            self._same(again, state, "in an identical run")

    def test_another_hash_seed(self, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, it writes the same points and ends in the same
        state.
        """
        hook = self.make()
        run = self._drive(hook, steps=STEPS)
        points = [point[:3] for point in run.summaries.recorded]
        own = {key: value for key, value in self._state(hook).items() if key not in self.own_keys}
        same_under_another_seed(request, [points, run.stop_reason, run.step, sorted(own.items())])

    def test_saves_change_nothing(self) -> None:
        """A run that saves after every step has the same effects as one that never does. `state` changes nothing, and
        `on_values` uses its own `steps`, because `run.step` may be ahead of them.
        """
        hook, saving = self.make(), self.make()
        expected = self._drive(hook, steps=STEPS)
        run = self._drive(saving, steps=STEPS, saved={})
        self._same_effects(run, expected, "asked for its state after every step")
        self._same(self._state(saving), self._state(hook), "asked for its state after every step")

    def test_takes_part_in_every_mode(self) -> None:
        """It survives runs of the `modes`: evaluations and predictions have no last step, and count batches."""
        for mode in self.modes:
            self._drive(self.make(), steps=5, run=FakeRun(mode=mode))

    def test_an_end_depends_on_what_it_reads(self) -> None:
        """A hook that reads outputs and ends runs does not end each of them at one step, whatever the outputs are."""
        values = {name: Unreadable() for name in self.outputs()}
        with contextlib.suppress(Exception):
            self._drive(self.make(), steps=STEPS, outputs={name: _always(one) for name, one in values.items()})
        read = [name for name, value in values.items() if value.read]
        if not read or self.reports_only:
            return
        ends: set[int | str | None] = set()
        for course in (_as_it_is, _uneven, _times(0), _times(1e9)):
            run = FakeRun()
            try:
                outputs = {name: course(function) for name, function in self.outputs().items()}
                self._drive(self.make(), steps=STEPS, run=run, outputs=outputs)
            except Exception as error:
                ends.add(type(error).__name__)
            else:
                ends.add(None if run.stop_reason is None else run.step)
        assert len(ends) > 1 or None in ends, f"it reads {', '.join(read)} and ends each run at step {ends}"

    def test_failures_reach_the_run(self) -> None:
        """A failure of the device in a value that it reads, or of the disk in a summary that it writes, ends it."""
        values = {name: Unreadable() for name in self.outputs()}
        try:
            self._drive(self.make(), steps=STEPS, outputs={name: _always(one) for name, one in values.items()})
        except Exception:
            pass
        else:
            read = [name for name, value in values.items() if value.read]
            assert not read, f"it read {', '.join(read)}, which failed, and the run continued"
        full = _FullDisk()
        try:
            self._drive(self.make(), steps=STEPS, run=FakeRun(summaries=full))
        except Exception:
            return
        assert self.forgives_writing or not full.failures, "it wrote summaries, which failed, and the run continued"

    def test_leaves_nothing_behind(self) -> None:
        """After a run in any of the `modes`, even a failed one, no thread runs and no file is open. Environment, signal
        handlers, filters of warnings and random generators of the process are as before.
        """
        kept: list[Hook] = []
        for mode in self.modes:
            with loading():
                kept.append(self.make())
                self._drive(kept[-1], steps=5, run=FakeRun(mode=mode))
            with leaving_nothing(f"after a run of mode {mode!r}, the hook"):
                kept.append(self.make())
                self._drive(kept[-1], steps=5, run=FakeRun(mode=mode))
        with leaving_nothing("after a run that failed, the hook"):
            kept.append(self.make())
            with pytest.raises(RuntimeError, match="the loop fails at step 3"):
                self._drive(kept[-1], steps=5, fail_at=3)

    def test_several_steps_a_dispatch(self) -> None:
        """With several steps per dispatch, the hook ends in the same state: it misses no step that it requested."""
        single, several = self.make(), self.make()
        self._drive(single, steps=STEPS)
        self._drive(several, steps=STEPS, steps_per_dispatch=5)
        self._same(self._state(several), self._state(single), "five steps per dispatch leave another state than one")

    def test_lateness_is_true(self) -> None:
        """Called as late as its `Wake.within` allows, the hook writes the same points and ends in the same state."""
        prompt, late = self.make(), self.make()
        expected = self._drive(prompt, steps=STEPS, still=True)
        run = self._drive(late, steps=STEPS, still=True, late=True)
        self._same(
            self._state(late), self._state(prompt), "called as late as its Wake allows, it ends in another state"
        )
        points, wanted = ([point[:3] for point in one.summaries.recorded] for one in (run, expected))
        assert points == wanted, f"called as late as its Wake allows, it wrote {points}, otherwise {wanted}"

    def test_says_what_a_step_costs(self, record_property: Callable[[str, object], None]) -> None:
        """It uses at most `most_ms_a_step` per step. The report and the output of `pytest -rP` have the figure as
        `microseconds_a_step`.
        """

        def seconds(hook: Hook) -> float:
            began = time.thread_time()
            self._drive(hook, steps=STEPS)
            return time.thread_time() - began

        own, none = (min(seconds(make()) for _ in range(2)) for make in (self.make, Hook))
        microseconds = max(own - none, 0.0) / STEPS * 1e6
        record_property("microseconds_a_step", round(microseconds, 1))
        sys.stdout.write(f"{type(self.make()).__name__}: {microseconds:.1f} microseconds a step\n")
        assert microseconds <= 1e3 * self.most_ms_a_step, f"it takes {microseconds / 1e3:.1f} ms of a step"

    def test_objects_are_independent(self) -> None:
        """Two hooks of the class share nothing."""
        first, second = self.make(), self.make()
        untouched = copy.deepcopy(dict(second.state()))
        self._drive(first, steps=STEPS)
        assert_same_state(self._state(second), untouched, "running one hook changed another object of its class")

    def _drive(
        self,
        hook: Hook,
        *,
        run: FakeRun | None = None,
        resume: Sequence[Mapping[str, Any]] = (),
        outputs: Mapping[str, Callable[[int], Any]] | None = None,
        still: bool = False,
        **arguments: Any,
    ) -> FakeRun:
        """Drives the hook with a clock that the steps advance, or with one that stands still, because a late hook does
        not control how long it waits. A resumed run has another `time.monotonic`, as in another process.
        """
        run = run or FakeRun()
        pace, origin = 0.0 if still else 1.0, 50.0 if resume else 1000.0 + run.step
        clock = StepClock(seconds_per_step=pace, monotonic=origin, now=_NOON + run.step)
        self._clocks[id(hook)] = clock
        return drive([hook], run=run, resume=resume, outputs=outputs or self.outputs(), clock=clock, **arguments)

    @functools.cached_property
    def _clocks(self) -> dict[int, StepClock]:
        """The clock that drove each hook last."""
        return {}

    def _state(self, hook: Hook) -> Mapping[str, Any]:
        """Returns the state of a hook at the time of its clock."""
        clock = self._clocks.get(id(hook))
        with contextlib.nullcontext() if clock is None else clock.shown():
            return hook.state()

    def _run_fresh(self) -> tuple[FakeRun, Mapping[str, Any]]:
        hook = self.make()
        run = self._drive(hook, steps=STEPS)
        return run, self._state(hook)

    def _same(self, actual: Mapping[str, Any], expected: Mapping[str, Any], message: str) -> None:
        """Compares the states of two runs, except for `own_keys`."""
        shared, wanted = ({key: one[key] for key in one if key not in self.own_keys} for one in (actual, expected))
        assert_same_state(shared, wanted, message)

    def _same_effects(self, run: FakeRun, expected: FakeRun, when: str, *, after: int = 0) -> None:
        points, wanted = (
            [
                (kind, tag, step, np.asarray(value).tolist())
                for kind, tag, step, value in one.summaries.recorded
                if step > after and not (after and tag in self.measured)
            ]
            for one in (run, expected)
        )
        assert points == wanted, f"{when}, it writes {points}, otherwise {wanted}"
        assert run.step == expected.step, f"{when}, the run ends at step {run.step}, otherwise at {expected.step}"
        assert run.stop_reason == expected.stop_reason, f"{when}, it stops for another reason: {run.stop_reason}"
        assert sorted(run.results) == sorted(expected.results), f"{when}, it adds the results {sorted(run.results)}"


class _FullDisk(RecordedSummaries):
    """Summaries that cannot be written. It counts the failures."""

    failures = 0

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Raises the failure."""
        self._refuse()

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """Raises the failure."""
        self._refuse()

    def image(self, tag: str, image: Any, step: int) -> None:
        """Raises the failure."""
        self._refuse()

    def text(self, tag: str, text: str, step: int) -> None:
        """Raises the failure."""
        self._refuse()

    def _refuse(self) -> None:
        self.failures += 1
        raise InjectedError("the disk is full")


def _as_it_is(function: Callable[[int], Any]) -> Callable[[int], Any]:
    return function


def _uneven(function: Callable[[int], Any]) -> Callable[[int], Any]:
    """Returns the same values in another order, so that falling values vary."""
    return lambda step: function(step * 7 % (STEPS + 1))


def _times(factor: float) -> Callable[[Callable[[int], Any]], Callable[[int], Any]]:
    return lambda function: lambda step: np.asarray(function(step)) * factor


def _always(value: Any) -> Callable[[int], Any]:
    return lambda step: value


def assert_same_state(actual: Mapping[str, Any], expected: Mapping[str, Any], message: str) -> None:
    """Compares two states: same keys, equal JSON values, bitwise equal arrays."""
    assert set(actual) == set(expected), f"{message}: keys {sorted(actual)}, expected {sorted(expected)}"
    for key, value in expected.items():
        same = np.array_equal(actual[key], value) if isinstance(value, np.ndarray) else actual[key] == value
        assert same, f"{message}: {key!r} is {actual[key]!r}, expected {value!r}"


def _through_json(state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the state as a checkpoint restores it."""
    return {
        key: value.copy() if isinstance(value, np.ndarray) else json.loads(json.dumps(value))
        for key, value in state.items()
    }
