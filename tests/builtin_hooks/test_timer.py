"""Tests of the timer of hooks against its contract and case 53 of the reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core._builtin_hooks import hook_parts
from estimator_core._builtin_hooks.hook_parts import SecondOrStepTimer


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(hook_parts.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def fired(timer: SecondOrStepTimer, steps: range) -> list[int]:
    triggered = []
    for step in steps:
        if timer.should_trigger_for_step(step):
            timer.update_last_triggered_step(step)
            triggered.append(step)
    return triggered


def test_case_53():
    assert fired(SecondOrStepTimer(every_steps=3), range(1, 11)) == [1, 4, 7, 10]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of every_secs and every_steps should be provided, given: every_secs=None, every_steps=None."),
        ({"every_secs": 1.0, "every_steps": 1}, "exactly one of .*, given: every_secs=1.0, every_steps=1."),
        ({"every_steps": 0}, "every_steps must be at least 1, and a whole number, given: 0"),
        ({"every_secs": 0}, "every_secs must be > 0, given: 0"),
    ],
)
def test_refused(arguments: dict[str, float], message: str):
    with pytest.raises(ValueError, match=message):
        SecondOrStepTimer(**arguments)  # type: ignore[arg-type]


def test_never_twice_for_one_step(clock: Clock):
    timer = SecondOrStepTimer(every_secs=1.0)
    assert timer.should_trigger_for_step(5)
    timer.update_last_triggered_step(5)
    clock.now += 10
    assert not timer.should_trigger_for_step(5)
    assert timer.should_trigger_for_step(6)


def test_seconds(clock: Clock):
    timer = SecondOrStepTimer(every_secs=2.0)
    assert timer.next_time() is None
    assert timer.next_step(0) == 1
    timer.update_last_triggered_step(1)
    assert timer.next_step(1) is None
    assert timer.next_time() == clock.now + 2.0
    clock.now += 1.9
    assert not timer.should_trigger_for_step(2)
    clock.now += 0.1
    assert timer.should_trigger_for_step(3)


def test_elapsed(clock: Clock):
    timer = SecondOrStepTimer(every_steps=10)
    assert timer.update_last_triggered_step(1) == (None, None)
    clock.now += 4.0
    assert timer.update_last_triggered_step(11) == (4.0, 10)
    assert timer.last_triggered_step() == 11
    timer.reset()
    assert timer.last_triggered_step() is None
    assert timer.should_trigger_for_step(11)


@given(every=st.integers(1, 20), first=st.integers(0, 50), asked=st.integers(1, 200), cut=st.integers(1, 199))
def test_next_step_and_resume_agree_with_asking_every_step(every: int, first: int, asked: int, cut: int):
    steps = range(first + 1, first + 1 + asked)
    expected = fired(SecondOrStepTimer(every_steps=every), steps)
    timer, jumped, step = SecondOrStepTimer(every_steps=every), [], first
    while (step := timer.next_step(step)) is not None and step in steps:
        timer.update_last_triggered_step(step)
        jumped.append(step)
    assert jumped == expected
    before, after = SecondOrStepTimer(every_steps=every), SecondOrStepTimer(every_steps=every)
    killed_at = steps[min(cut, asked) - 1]
    resumed = fired(before, range(first + 1, killed_at + 1))
    after.restore(before.state())
    assert resumed + fired(after, range(killed_at + 1, steps.stop)) == expected


def test_the_time_a_process_was_away_does_not_count(clock: Clock):
    timer = SecondOrStepTimer(every_secs=10.0)
    timer.update_last_triggered_step(1)
    clock.now += 4.0
    state = timer.state()
    clock.now += 1000.0
    resumed = SecondOrStepTimer(every_secs=10.0)
    resumed.restore(state)
    clock.now += 5.9
    assert not resumed.should_trigger_for_step(2)
    clock.now += 0.1
    assert resumed.should_trigger_for_step(3)
