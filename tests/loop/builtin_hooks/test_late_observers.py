"""Hooks that only observe are called late, and see what they would have seen in time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core.loop import pace
from tests.loop.builtin_hooks.driver import drive, loss_of

Call = tuple[str, int, float]


class Noting(ec.Hook):
    """Notes its calls at the steps given, and, by `dispatched`, how late they came."""

    def __init__(self, label: str, steps: set[int], calls: list[Call], late: list[int], dispatched: list[int]) -> None:
        self._label, self._steps, self._calls = label, steps, calls
        self._late, self._dispatched = late, dispatched

    def next_step(self, step: int) -> int | None:
        return min((at for at in self._steps if at > step), default=None)

    def after_step(self, run: Any, step: int, out: Any) -> None:
        assert run.step == step
        assert list(out.steps) == [step]
        self._calls.append((self._label, step, float(out["loss"])))
        self._late.append(self._dispatched[-1] - step)


class Observer(Noting):
    observes = True


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many dispatches in flight as where steps are short, whatever the clock says."""
    monkeypatch.setattr(pace, "LEAST", pace.MOST)


def calls_of(kinds: list[tuple[bool, set[int]]], *, late: bool, fails_at: int | None = None) -> tuple[list[Call], Any]:
    calls: list[Call] = []
    lateness: list[int] = []
    dispatched: list[int] = [0]

    def loss(step: int) -> float:
        if step == fails_at:
            raise RuntimeError("the device is gone")
        dispatched.append(step)
        return loss_of(step)

    hooks = [
        (Observer if observes else Noting)(str(place), steps, calls, lateness, dispatched)
        for place, (observes, steps) in enumerate(kinds)
    ]
    if fails_at is None:
        drive(hooks, steps=80, outputs={"loss": loss}, late=late)
    else:
        with pytest.raises(RuntimeError, match="the device is gone"):
            drive(hooks, steps=80, outputs={"loss": loss}, late=late)
    return calls, lateness


hooks_strategy = st.lists(
    st.tuples(st.booleans(), st.sets(st.integers(1, 80), max_size=12) | st.builds(set, st.just(range(1, 81)))),
    min_size=1,
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(kinds=hooks_strategy, fails_at=st.none() | st.integers(1, 80))
def test_the_calls_are_those_of_hooks_called_in_time(
    short_steps: None, kinds: list[tuple[bool, set[int]]], fails_at: int | None
) -> None:
    in_time, _ = calls_of(kinds, late=False, fails_at=fails_at)
    late, _ = calls_of(kinds, late=True, fails_at=fails_at)
    assert late == in_time


def test_observers_are_called_while_later_steps_are_under_way(short_steps: None) -> None:
    _, lateness = calls_of([(True, {10, 50})], late=True)
    assert min(lateness) > 0


def test_the_others_never_are(short_steps: None) -> None:
    _, lateness = calls_of([(True, {10, 12, 50}), (False, {12, 52})], late=True)
    assert lateness[1:3] == [0, 0]  # step 12: both, because one of them is no observer
    assert lateness[-1] == 0


def test_long_steps_are_not_worth_it() -> None:
    _, lateness = calls_of([(True, {1, 2, 3})], late=True)
    assert lateness == [0, 0, 0]


def test_what_an_observer_raises_is_raised_at_the_end_at_the_latest(short_steps: None) -> None:
    class Fails(ec.Hook):
        observes = True

        def next_step(self, step: int) -> int | None:
            return 79 if step < 79 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            raise ValueError(f"at {step}")

    with pytest.raises(ValueError, match="at 79") as raised:
        drive([Fails()], steps=80, late=True)
    assert "after_step, step 79" in raised.value.__notes__[0]


def test_a_hook_that_wants_the_step_before_is_no_observer(short_steps: None) -> None:
    seen: list[int] = []

    class Before(Observer):
        def before_step(self, run: Any, step: int) -> None:
            seen.append(step)

    lateness: list[int] = []
    dispatched = [0]
    hook = Before("0", {5}, [], lateness, dispatched)
    drive([hook], steps=20, outputs={"loss": lambda step: (dispatched.append(step), loss_of(step))[1]}, late=True)
    assert (seen, lateness) == ([4], [0])
