"""Tests of the state of hooks: it is restored if, and only if, the call continues an interrupted one."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import PreemptedError


class Count(ec.Hook):
    """Counts steps, in its state."""

    def __init__(self) -> None:
        self.count = 0
        self.began_with: int | None = None
        self.resumed: bool | None = None

    def next_step(self, step: int) -> int:
        return step + 1

    def after_create(self, run: Any) -> None:
        self.began_with, self.resumed = self.count, run.resumed

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.count += 1

    def state(self) -> Mapping[str, Any]:
        return {"count": self.count}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.count = state["count"]


class Patience(ec.Hook):
    """Stops after ten steps, counted across restarts."""

    def __init__(self) -> None:
        self.waited = 0

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.waited += 1
        if self.waited >= 10:
            run.request_stop("patience is over")

    def state(self) -> Mapping[str, Any]:
        return {"waited": self.waited}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.waited = state["waited"]


class Terminate(ec.Hook):
    def __init__(self, at: int) -> None:
        self.at = at

    def next_step(self, step: int) -> int | None:
        return self.at if step < self.at else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_fresh_call_of_one_estimator_begins_without_memory(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator()
    for _ in range(2):
        hook = Count()
        estimator.train(train_input, hooks=[hook], steps=10)
        assert (hook.resumed, hook.began_with, hook.count) == (False, 0, 10)


def test_a_fresh_call_of_another_process_begins_without_memory(make_estimator: Any, train_input: Any) -> None:
    make_estimator().train(train_input, hooks=[Count()], steps=10)
    hook = Count()
    make_estimator().train(train_input, hooks=[hook], steps=10)
    assert (hook.resumed, hook.began_with, hook.count) == (False, 0, 10)


@pytest.mark.parametrize("same_estimator", [True, False])
def test_a_new_hook_has_all_its_patience(make_estimator: Any, train_input: Any, same_estimator: bool) -> None:
    estimator = make_estimator()
    estimator.train(train_input, hooks=[Patience()], max_steps=100)
    again = estimator if same_estimator else make_estimator()
    again.train(train_input, hooks=[Patience()], max_steps=100)
    assert again.latest_checkpoint().endswith("/20")


@pytest.mark.parametrize("same_estimator", [True, False])
def test_an_interrupted_call_goes_on_with_its_memory(
    make_estimator: Any, train_input: Any, same_estimator: bool
) -> None:
    first = make_estimator()
    with pytest.raises(PreemptedError):
        first.train(train_input, hooks=[Count(), Terminate(7)], max_steps=20)
    hook = Count()
    (first if same_estimator else make_estimator()).train(train_input, hooks=[hook], max_steps=20)
    assert (hook.resumed, hook.began_with, hook.count) == (True, 7, 20)


def test_the_state_after_an_interruption_is_that_of_its_checkpoint(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator()
    with pytest.raises(PreemptedError):
        estimator.train(train_input, hooks=[Terminate(7)], max_steps=20)
    saved = make_estimator().variables
    for name, value in estimator.variables.items():
        np.testing.assert_array_equal(value, saved[name], name)


def test_without_checkpoints_an_interrupted_estimator_keeps_its_state(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator(save_checkpoints_steps=None, save_checkpoints_secs=None)
    with pytest.raises(PreemptedError, match="not saved"):
        estimator.train(train_input, hooks=[Terminate(7)], max_steps=20)
    hook = Count()
    estimator.train(train_input, hooks=[hook], max_steps=20)
    assert hook.count == 13
