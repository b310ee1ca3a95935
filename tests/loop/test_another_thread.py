"""Tests of calls in one thread while another thread trains the same Estimator. They work on the newest checkpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._loop.inference_state import InferenceStates
from estimator_core.errors import CheckpointNotFoundError


class PauseAfter(ec.Hook):
    """Pauses after a step and reads a variable there, inside the training."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.reached, self.resume = threading.Event(), threading.Event()
        self.read: Any = None

    def next_step(self, step: int) -> int | None:
        return self.step if step < self.step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == self.step:
            self.read = run.estimator.get_variable_value("w")
            self.reached.set()
            assert self.resume.wait(60)


class Training:
    """A training in a thread. It is paused from `reached` until the block ends."""

    def __init__(self, estimator: ec.Estimator, input_fn: Callable[..., Any], pause: PauseAfter) -> None:
        self._pause, self._error = pause, None
        self._thread = threading.Thread(target=self._train, args=(estimator, input_fn))

    def _train(self, estimator: ec.Estimator, input_fn: Callable[..., Any]) -> None:
        try:
            estimator.train(input_fn, max_steps=20, hooks=[self._pause])
        except BaseException as error:
            self._error = error

    def __enter__(self) -> None:
        self._thread.start()
        assert self._pause.reached.wait(60), self._error

    def __exit__(self, *_: object) -> None:
        self._pause.resume.set()
        self._thread.join(60)
        assert self._error is None


def wait_for(estimator: ec.Estimator, step: int) -> None:
    """Waits for a checkpoint of this step or a later one, because its commit runs in parallel with the steps."""
    deadline = time.monotonic() + 60
    while (newest := estimator.latest_checkpoint()) is None or int(Path(newest).name) < step:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_calls_work_on_the_newest_checkpoint(
    make_estimator: Any, train_input: Any, eval_input: Any, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator, pause = make_estimator(), PauseAfter(15)
    other = make_estimator()
    with Training(estimator, train_input, pause):
        wait_for(other, 10)
        saved = other.get_variable_value("w")
        assert not np.array_equal(saved, pause.read)  # of step 15
        np.testing.assert_array_equal(estimator.get_variable_value("w"), saved)
        np.testing.assert_array_equal(estimator.variables["w"], saved)
        with monkeypatch.context() as patch:  # only the variables requested by name are read
            patch.setattr(InferenceStates, "get", pytest.fail)
            np.testing.assert_array_equal(estimator.get_variable_value("b"), other.get_variable_value("b"))
            assert estimator.get_variable_names() == ["b", "w"]
        assert estimator.get_variable_names() == other.get_variable_names() == ["b", "w"]
        assert estimator.evaluate(eval_input) == other.evaluate(eval_input)
        assert estimator.evaluate(eval_input)["global_step"] == 10
        found = [one["y"] for one in estimator.predict(eval_input)]
        np.testing.assert_array_equal(found, [one["y"] for one in other.predict(eval_input)])
        np.testing.assert_array_equal(estimator.predictor()({"x": data.x[:2]})["y"], found[:2])
    assert estimator.evaluate(eval_input)["global_step"] == 20
    assert not np.array_equal(estimator.get_variable_value("w"), saved)
    assert estimator.train(train_input, max_steps=23).evaluate(eval_input)["global_step"] == 23


@pytest.mark.plugins
def test_an_export_is_of_the_newest_checkpoint(
    make_estimator: Any, train_input: Any, eval_input: Any, data: Any, tmp_path: Path
) -> None:
    def receiver() -> ec.export.ServingInputReceiver:
        return ec.export.ServingInputReceiver({"x": ec.export.Feature((None, 3))})

    estimator, pause = make_estimator(), PauseAfter(15)
    with Training(estimator, train_input, pause):
        wait_for(estimator, 10)
        export = ec.export.load(estimator.export_saved_model(str(tmp_path / "exports"), receiver))
    found = export.signatures["serving_default"](x=data.x)["y"]
    checkpoint = str(Path(estimator.model_dir, "checkpoints", "10"))
    expected = [one["y"] for one in estimator.predict(eval_input, checkpoint_path=checkpoint)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_what_is_not_saved_yet_is_not_read(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    estimator, pause = make_estimator(components={"checkpoint_policy": None}), PauseAfter(5)
    calls: list[Callable[[], Any]] = [
        lambda: estimator.evaluate(eval_input),
        lambda: next(iter(estimator.predict(eval_input))),
        lambda: estimator.get_variable_value("w"),
        lambda: estimator.variables,
    ]
    with Training(estimator, train_input, pause):
        for call in calls:
            with pytest.raises(
                CheckpointNotFoundError, match=r"Another thread is training this Estimator, and there is no"
            ):
                call()


def test_two_threads_may_evaluate_different_checkpoints(
    make_estimator: Any, train_input: Any, eval_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = make_estimator().train(train_input, max_steps=20)
    first = str(Path(estimator.model_dir, "checkpoints", "10"))
    expected = estimator.evaluate(eval_input, checkpoint_path=first)
    drops: list[bool] = []

    class Kept(tuple[Any, ...]):
        """The kept state of `first`, which the other thread replaces as soon as this one has looked at it."""

        __slots__ = ()

        def __getitem__(self, index: Any) -> Any:
            drops.append(True)
            states._kept = None
            return super().__getitem__(index)

    states = estimator._states
    states._kept = Kept(states._kept)
    assert estimator.evaluate(eval_input, checkpoint_path=first) == expected
    assert drops


def test_an_evaluation_keeps_its_values_though_a_training_begins(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    estimator = make_estimator().train(train_input, max_steps=4)
    expected = estimator.evaluate(eval_input)
    reading, resume, found = threading.Event(), threading.Event(), []

    def slow_input() -> Any:
        for number, batch in enumerate(eval_input()):
            if number == 2:
                reading.set()
                assert resume.wait(60)
            yield batch

    thread = threading.Thread(target=lambda: found.append(estimator.evaluate(slow_input)))
    thread.start()
    assert reading.wait(60)
    estimator.train(train_input, max_steps=9)
    resume.set()
    thread.join(60)
    assert found == [expected]
    assert estimator.evaluate(eval_input)["global_step"] == 9


class StopWhenTold(ec.Hook):
    """Stops the training once a thread has seen enough."""

    def __init__(self) -> None:
        self.enough = threading.Event()

    def next_step(self, step: int) -> int | None:
        return step + 100

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if self.enough.is_set():
            run.request_stop("enough")


def test_calls_beside_running_steps(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    estimator, stop = make_estimator(save_checkpoints_steps=500), StopWhenTold()
    thread = threading.Thread(target=lambda: estimator.train(train_input, hooks=[stop]))
    thread.start()
    try:
        wait_for(estimator, 0)
        steps: list[int] = []
        for _ in range(20):
            steps.append(int(estimator.evaluate(eval_input)["global_step"]))
            assert estimator.get_variable_value("w").shape == (3,)
        assert thread.is_alive()
    finally:
        stop.enough.set()
        thread.join(60)
    assert steps == sorted(steps)
    assert all(step % 500 == 0 for step in steps)
    assert str(estimator.evaluate(eval_input)["global_step"]) == Path(estimator.latest_checkpoint() or "").name
