"""Tests that every second of a call belongs to one entry, however jax reports its compilations."""

from __future__ import annotations

from collections.abc import Callable

import jax.monitoring
import pytest

from estimator_core._loop import time_spent
from estimator_core._loop.time_spent import COMPILE, HOOKS, INPUT, STEP, TimeSpent


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Advances the clock."""
    now = 100.0

    def move(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(time_spent.time, "perf_counter", lambda: now)
    return move


def report(seconds: float) -> None:
    jax.monitoring.record_event_duration_secs("/jax/core/compile/some_part", seconds)


def test_a_compilation_inside_another_counts_once(wait: Callable[[float], None]) -> None:
    spent = TimeSpent()
    with spent.compilations():
        wait(0.2)
        report(0.2)  # of a function that is called by the next one
        wait(0.3)
        report(0.5)
        wait(0.5)
        report(1.0)  # around both
    spent.change(STEP)
    assert spent.seconds[COMPILE] == pytest.approx(1.0)
    assert spent.seconds[STEP] == pytest.approx(0.0)


def test_compilations_one_after_the_other_both_count(wait: Callable[[float], None]) -> None:
    spent = TimeSpent()
    with spent.compilations():
        for _ in range(2):
            wait(0.5)
            report(0.25)
    report(5.0)  # the listener is removed
    spent.change(STEP)
    assert spent.seconds[COMPILE] == pytest.approx(0.5)
    assert spent.seconds[STEP] == pytest.approx(0.5)


def test_what_is_drawn_within_an_entry_is_taken_off_it(wait: Callable[[float], None]) -> None:
    spent = TimeSpent()
    with spent.on(HOOKS):
        wait(3.0)
        spent.drawn += 1.0
    wait(4.0)
    spent.change(STEP)
    assert {name: secs for name, secs in spent.seconds.items() if secs} == {HOOKS: 2.0, INPUT: 1.0, STEP: 4.0}
