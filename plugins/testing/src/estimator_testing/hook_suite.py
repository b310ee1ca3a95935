"""The suite for hooks."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from estimator_core.hooks import Hook, Wake
from estimator_testing.fake_run import FakeRun
from estimator_testing.hook_driver import drive
from estimator_testing.suite import Suite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from estimator_core.hooks import Run

STEPS = 24


class HookSuite(Suite):
    """Proves that a hook keeps its promises to the loop and to a resumed run. Subclass it and say how the hook is made.

    Example:
        >>> class TestMyHook(HookSuite):
        ...     def make(self):
        ...         return Hook()
    """

    def make(self) -> Hook:
        """A fresh hook; called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def outputs(self) -> Mapping[str, Callable[[int], Any]]:
        """The outputs that the hook sees: value by global step. Override it if the hook reads others."""
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
        """`next_step` answers the same twice."""
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
        for key, value in hook.state().items():
            assert isinstance(key, str), f"state key {key!r} is no string"
            if not isinstance(value, np.ndarray):
                assert json.loads(json.dumps(value)) == value, f"state {key!r} is {value!r}, which JSON does not keep"

    def test_state_is_a_copy(self) -> None:
        """The result of `state()` does not change while the run continues: it is written in the background."""
        hook = self.make()
        run = self._drive(hook, steps=5)
        state = hook.state()
        before = copy.deepcopy(dict(state))
        self._drive(hook, steps=5, run=FakeRun(step=run.step))
        assert_same_state(state, before, "the state given at step 5 changed with the steps after it")

    def test_state_comes_back(self) -> None:
        """After `restore(state)`, a fresh hook returns that state again."""
        hook = self.make()
        self._drive(hook, steps=5)
        state = _through_json(hook.state())
        fresh = self.make()
        self._drive(fresh, steps=0, run=FakeRun(step=5), resume=[state])
        assert_same_state(fresh.state(), state, "a hook that was given a state back has another one")

    def test_resume_is_seamless(self) -> None:
        """A run that is interrupted and resumed leaves the same state as one that is not."""
        straight = self.make()
        self._drive(straight, steps=STEPS)
        for at in (1, STEPS // 2):
            first, second = self.make(), self.make()
            run = self._drive(first, steps=at)
            if run.stop_reason is not None:
                continue  # the hook itself ended the run: there is nothing to resume
            resume = [_through_json(first.state())]
            self._drive(second, steps=STEPS - at, run=FakeRun(step=run.step), resume=resume)
            assert_same_state(second.state(), straight.state(), f"resumed at step {at}, the state at the end differs")

    def test_several_steps_a_dispatch(self) -> None:
        """With several steps per dispatch the hook ends with the same state: it misses no step it asked for."""
        single, several = self.make(), self.make()
        self._drive(single, steps=STEPS)
        self._drive(several, steps=STEPS, steps_per_dispatch=5)
        assert_same_state(several.state(), single.state(), "five steps per dispatch leave another state than one")

    def test_lateness_is_true(self) -> None:
        """Called as late as its `Wake.within` allows, the hook writes the same points and ends with the same state."""
        prompt, late = self.make(), self.make()
        expected = self._drive(prompt, steps=STEPS)
        run = self._drive(late, steps=STEPS, late=True)
        assert_same_state(late.state(), prompt.state(), "called as late as its Wake allows, it ends in another state")
        points, wanted = ([point[:3] for point in one.summaries.recorded] for one in (run, expected))
        assert points == wanted, f"called as late as its Wake allows, it wrote {points}, otherwise {wanted}"

    def test_objects_are_independent(self) -> None:
        """Two hooks of the class share nothing."""
        first, second = self.make(), self.make()
        untouched = copy.deepcopy(dict(second.state()))
        self._drive(first, steps=STEPS)
        assert_same_state(second.state(), untouched, "running one hook changed another object of its class")

    def _drive(self, hook: Hook, **arguments: Any) -> FakeRun:
        return drive([hook], outputs=self.outputs(), **arguments)


def assert_same_state(actual: Mapping[str, Any], expected: Mapping[str, Any], message: str) -> None:
    """Compares two states: same keys, equal JSON values, bitwise equal arrays."""
    assert set(actual) == set(expected), f"{message}: keys {sorted(actual)}, expected {sorted(expected)}"
    for key, value in expected.items():
        same = np.array_equal(actual[key], value) if isinstance(value, np.ndarray) else actual[key] == value
        assert same, f"{message}: {key!r} is {actual[key]!r}, expected {value!r}"


def _through_json(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state as a checkpoint restores it."""
    return {
        key: value.copy() if isinstance(value, np.ndarray) else json.loads(json.dumps(value))
        for key, value in state.items()
    }
