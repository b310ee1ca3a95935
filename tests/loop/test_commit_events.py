"""Tests of `estimator_checkpoint_saved`: it is called once for each committed checkpoint, even if the run fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._plugins import Plugins
from estimator_core.errors import PluginError
from tests.loop.conftest import linear_model_fn


class Crash(ec.Hook):
    """Raises after a step."""

    def __init__(self, at: int) -> None:
        self.at = at

    def next_step(self, step: int) -> int | None:
        return self.at if step < self.at else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        raise OSError("power cut")


class Wait(ec.Hook):
    """Sleeps at each step until `of` is set or `most` steps have passed, so that a background commit can finish."""

    def __init__(self, of: threading.Event, most: int) -> None:
        self.of, self.most = of, most

    def next_step(self, step: int) -> int | None:
        return None if self.of.is_set() or step >= self.most else step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.of.wait(0.05)


@pytest.fixture
def told() -> list[tuple[int, int]]:
    """The list of events, each as (announced step, step of the run at that time)."""
    return []


@pytest.fixture
def make_observed(tmp_path: Path) -> Callable[..., ec.Estimator]:
    """Makes an estimator whose only plugin passes each event to a function."""

    def make(observe: Callable[..., None], model_dir: Path | None = None) -> ec.Estimator:
        observer = SimpleNamespace(ESTIMATOR_PLUGIN_API=(1, 0), estimator_checkpoint_saved=observe)
        config = ec.RunConfig(
            model_dir=str(model_dir or tmp_path / "model"), tf_random_seed=1, save_checkpoints_steps=10
        )
        plugins = Plugins(autoload=False, extra=[observer], environ={}, strict=True)
        return ec.Estimator(linear_model_fn, config=config, params={}, plugins=plugins)

    return make


@pytest.fixture
def observed(make_observed: Callable[..., ec.Estimator], told: list[tuple[int, int]]) -> Callable[..., ec.Estimator]:
    """Returns a function that makes estimators whose events are recorded in `told`."""

    def note(run: Any, step: int, path: str) -> None:
        assert (Path(path) / "manifest.json").exists(), "told of a checkpoint that is not there"
        told.append((step, run.step))

    return lambda model_dir=None: make_observed(note, model_dir)


def test_each_committed_checkpoint_of_a_failed_run_is_told(
    observed: Any, train_input: Any, told: list[tuple[int, int]], steps_saved: Any
) -> None:
    estimator = observed()
    with pytest.raises(OSError, match="power cut"):
        estimator.train(train_input, hooks=[Crash(35)], max_steps=100)
    assert [step for step, _ in told] == steps_saved(estimator) == [0, 10, 20, 30]


def test_a_checkpoint_is_told_before_the_next_is_due(
    observed: Any, train_input: Any, told: list[tuple[int, int]]
) -> None:
    observed().train(train_input, hooks=[Wait(threading.Event(), 19)], max_steps=20)
    assert [step for step, _ in told] == [0, 10, 20]
    assert [at < step + 10 for step, at in told] == [True, True, True]


def test_all_but_the_last_are_told_before_end_of_the_hooks(
    observed: Any, train_input: Any, told: list[tuple[int, int]]
) -> None:
    seen: list[int] = []

    class AtEnd(ec.Hook):
        def end(self, run: Any) -> None:
            seen.extend(step for step, _ in told)

    with pytest.raises(OSError, match="power cut"):
        observed().train(train_input, hooks=[AtEnd(), Crash(11)], max_steps=100)
    assert seen == [0, 10]


@pytest.mark.parametrize("crashes", [False, True])
def test_a_checkpoint_whose_commit_fails_is_not_told(
    observed: Any,
    train_input: Any,
    told: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    crashes: bool,
) -> None:
    from estimator_core._checkpoint import store

    commit = store.commit

    def fails_at_ten(shelf: Any, draft: Any, *others: Any) -> Any:
        if draft.manifest.step == 10:
            raise OSError("the disk is gone")
        return commit(shelf, draft, *others)

    monkeypatch.setattr(store, "commit", fails_at_ten)
    with pytest.raises(OSError, match="power cut" if crashes else "the disk is gone"):
        observed().train(train_input, hooks=[Crash(11)] if crashes else [], max_steps=12)
    assert [step for step, _ in told] == [0]


def test_an_observer_that_raises_keeps_no_hook_from_its_end(make_observed: Any, train_input: Any) -> None:
    ended: list[int] = []

    class AtEnd(ec.Hook):
        def end(self, run: Any) -> None:
            ended.append(run.step)

    def refuse(step: int) -> None:
        raise ValueError(f"no room for {step}")

    with pytest.raises(PluginError, match="no room for 0"):
        make_observed(refuse).train(train_input, hooks=[AtEnd()], max_steps=12)
    assert len(ended) == 1


def test_the_events_of_a_save_cost_the_state_nothing(
    make_estimator: Any, observed: Any, train_input: Any, tmp_path: Path
) -> None:
    with_observer = observed(tmp_path / "a").train(train_input, max_steps=12)
    without = make_estimator(model_dir=tmp_path / "b").train(train_input, max_steps=12)
    for name, value in without.variables.items():
        np.testing.assert_array_equal(with_observer.variables[name], value, name)


def test_one_look_tells_of_all_that_is_committed() -> None:
    from estimator_core._checkpoint.items import PendingCheckpoint
    from estimator_core._loop.checkpoints import Checkpoints
    from estimator_core._loop.time_spent import TimeSpent

    seen: list[int] = []
    gate = threading.Event()
    first, second = (PendingCheckpoint(step, lambda step=step: f"checkpoints/{step}") for step in (10, 20))
    third = PendingCheckpoint(30, lambda: (gate.wait(), "checkpoints/30")[1])
    plugins = SimpleNamespace(checkpoint_saved=lambda run, step, path: None)
    context, state, store = SimpleNamespace(account=TimeSpent(), plugins=plugins), SimpleNamespace(), SimpleNamespace()
    state.checkpoint_step, store.lost = None, None
    entries: Any = {"position": None, "timers": dict, "recorded": lambda step: (), "committed": seen.append}
    checkpoints = Checkpoints(*cast("Any", (context, None, state, dict, store)), **entries)
    checkpoints._pending += [first, second, third]
    first.join()
    second.join()
    assert not checkpoints.tell_commits()
    assert seen == [10, 20]
    gate.set()
    checkpoints.finish()
    assert seen == [10, 20, 30]
