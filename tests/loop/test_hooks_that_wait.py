"""Tests of hooks that only read outputs: they are called while the device continues, as late as they allow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._loop import batches as batches_module
from estimator_core._loop import hook_schedule as hook_schedule_module
from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.batches import Batches
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import InFlightLimiter
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.time_spent import TimeSpent
from estimator_core._loop.train import train_loop
from estimator_core._step.state import TrainState, initial_clock
from estimator_core.errors import HookError
from estimator_core.testing import drive as fake_drive
from estimator_core.testing import tiny_estimator, tiny_input_fn


@pytest.fixture(autouse=True)
def drawing_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes drawing a batch take no time, because hooks do not wait for a slow input and a busy machine may be slow."""
    monkeypatch.setattr(batches_module, "perf_counter", lambda: 0.0)


class Every(ec.Hook):
    """Records its step, the values it read there, and the current step of the run."""

    def __init__(self, every: int, within: int, log: list[Any]) -> None:
        self.every, self.within, self.log = every, within, log
        self.seen = 0

    def next_step(self, step: int) -> ec.Wake:
        due = step + 1 if not self.seen else (step // self.every + 1) * self.every
        return ec.Wake(step=due, within=min(self.within, self.every - 1 - due % self.every))

    def before_step(self, run: Any, step: int) -> None:
        self.log.append(("before", self.every, step))

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.seen = step
        self.log.append((self.every, step, float(out["loss"]), run.step))

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen}


class Loss:
    """A loss that is ready `behind` dispatches later, or when the host waits for it."""

    dispatched = 0

    def __init__(self, value: Any, behind: int) -> None:
        Loss.dispatched += 1
        self.number, self.value, self.behind = Loss.dispatched, value, behind

    def is_ready(self) -> bool:
        return Loss.dispatched >= self.number + self.behind

    def block_until_ready(self) -> None:
        """Ignores the limit of the loop."""

    def __getitem__(self, index: int) -> np.ndarray:
        return np.asarray(self.value[index])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.value, dtype)


class Run:
    """The parts of a run that the loop and the hooks need."""

    mode = "train"

    def __init__(self, last_step: int | None) -> None:
        self.step = self.first_step = self.batch_size = 0
        self.last_step, self.stop_reason, self.time_spent = last_step, None, TimeSpent()
        self.output_names, self.followed = frozenset({"loss"}), list[str]()
        self.hook_seconds: dict[str, float] = {}

    def advance(self, dispatch: Any) -> None:
        self.step += dispatch.steps


class Batch:
    """A batch without content."""

    features = np.zeros(1)
    labels = weights = position = None
    size = 1


def empty_batches(count: int) -> Iterator[Any]:
    yield from [Batch] * count


def drive(
    hooks: list[Any],
    *,
    steps: int,
    behind: int,
    k: int = 1,
    last_step: bool = True,
    alone: bool = True,
    source: Callable[[int], Iterator[Any]] = empty_batches,
    look_after: Callable[[], bool] | None = None,
    use: Callable[[HookSchedule], None] = lambda schedule: None,
) -> Any:
    """Trains with losses equal to the step."""
    run: Any = Run(steps if last_step else None)
    calls = HookCalls(hooks, run)
    live = DeviceState(state=TrainState(jnp.asarray(initial_clock(1)), {}, {}, ()), step=0)

    def program(count: int) -> Any:
        def step(state: Any, *batch: Any) -> Any:
            losses = np.arange(run.step + 1.0, run.step + count + 1.0)
            return state, {"loss": Loss(losses if count > 1 else losses[0], behind)}

        return step

    batches = Batches(source(steps), np.stack, run.time_spent, alone=alone)
    batches.group(k)
    schedule = HookSchedule(
        calls, run, batches=batches, account=run.time_spent, agreement=NOBODY_ASKS, look_after=look_after
    )
    use(schedule)
    calls.begin()
    schedule.start(live)
    train_loop(run, live, batches, {n: program(n) for n in {1, k}}, schedule, InFlightLimiter(), NOBODY_ASKS)
    return schedule


def steps_of(log: list[Any], every: int) -> list[int]:
    return [entry[1] for entry in log if entry[0] == every]


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("behind", [0, 1, 7, 1000])
def test_a_hook_that_waits_sees_its_own_steps(k: int, behind: int) -> None:
    log: list[Any] = []
    drive([Every(20, 19, log)], steps=100, behind=behind, k=k)
    calls = [entry for entry in log if entry[0] == 20]
    assert [step for _, step, _, _ in calls] == [1, 20, 40, 60, 80, 100]
    assert [loss for _, _, loss, _ in calls] == [1, 20, 40, 60, 80, 100]
    waited = [at - step for _, step, _, at in calls]
    assert waited[-1] == 0  # at the last step the loop has to wait
    assert all(0 <= steps <= 19 for steps in waited)
    # once the loss is ready and not earlier, unless the hook must not wait longer
    expected = min(behind * k, 19 // k * k)
    assert waited[1:-1] == [expected] * 4


def test_a_hook_that_is_not_late_is_called_at_its_step() -> None:
    log: list[Any] = []
    drive([Every(10, 9, log), Every(20, 0, log)], steps=60, behind=5)
    at_twenty = [entry[3] - entry[1] for entry in log if entry[0] == 20]
    assert at_twenty == [0, 0, 0, 0]  # 1, 20, 40, 60
    shared = [entry[3] - entry[1] for entry in log if entry[0] == 10 and entry[1] % 20 == 0]
    assert shared == [0, 0, 0]  # hooks due at one step are called together, in their order
    assert [entry[3] - entry[1] for entry in log if entry[0] == 10 and entry[1] in (10, 30, 50)] == [5, 5, 5]


def test_a_hook_that_waits_is_called_before_the_next_one() -> None:
    log: list[Any] = []
    drive([Every(10, 9, log), Every(13, 12, log)], steps=60, behind=1000)
    order = [entry[1] for entry in log if entry[0] != "before"]
    assert order == sorted(order)
    assert steps_of(log, 10) == [1, 10, 20, 30, 40, 50, 60]
    assert steps_of(log, 13) == [1, 13, 26, 39, 52]


def test_the_loop_does_not_end_before_they_are_called() -> None:
    log: list[Any] = []
    schedule = drive([Every(10, 9, log)], steps=15, behind=1000, last_step=False)
    assert steps_of(log, 10) == [1, 10]
    assert schedule.states() == {"Every": {"seen": 10}}


def test_a_state_knows_of_every_step_before_it() -> None:
    log: list[Any] = []
    hook, saved = Every(10, 9, log), dict[int, Any]()

    class Saver(ec.Hook):
        def next_step(self, step: int) -> int | None:
            return 14 if step < 14 else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            saved.update(schedules[0].states())

    schedules: list[HookSchedule] = []
    drive([Saver(), hook], steps=30, behind=1000, use=schedules.append)
    assert saved == {"Every": {"seen": 10}}


def test_several_processes_call_hooks_at_once() -> None:
    """Decisions of several processes must take effect at the same step in all of them."""
    log: list[Any] = []
    drive([Every(10, 9, log)], steps=40, behind=1000, alone=False)
    assert [entry[3] - entry[1] for entry in log if entry[0] == 10] == [0] * 5


def test_an_error_of_a_hook_that_waited_names_its_step() -> None:
    class Failing(Every):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            super().after_step(run, step, out)
            if step == 20:
                raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        drive([Failing(10, 9, [])], steps=60, behind=3)
    assert any("Failing" in note and "step 20" in note for note in caught.value.__notes__)


def slow_model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """A model whose step takes milliseconds, so that the host runs ahead. Its loss is NaN at one step."""
    weights = ec.get_variable("w", (3,))
    seen = ec.get_variable("seen", (), jax.nn.initializers.zeros, trainable=False)
    if mode == ec.ModeKeys.TRAIN:
        ec.set_variable("seen", seen + 1)
    square = jnp.ones((400, 400)) * weights[0]
    loss = jnp.mean((features["x"] @ weights - labels) ** 2) + 1e-9 * jnp.tanh(square @ square @ square).mean()
    loss = jnp.where(seen + 1 == params["bad"], jnp.nan, loss)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0))


@pytest.mark.parametrize("bad", [51, 52, 99, 101, 149, 150])
def test_a_bad_loss_is_found_at_its_step(make_estimator: Any, train_input: Any, bad: int) -> None:
    estimator = make_estimator(slow_model_fn, params={"bad": bad}, save_checkpoints_steps=None, log_step_count_steps=50)
    with pytest.raises(ec.errors.NanLossDuringTrainingError, match=f"at step {bad}") as caught:
        estimator.train(train_input, steps=150)
    assert caught.value.step == bad


def test_the_history_has_every_row(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator(slow_model_fn, params={"bad": 0}, save_checkpoints_steps=None, log_step_count_steps=50)
    estimator.train(train_input, steps=130)
    assert [row["step"] for row in estimator.history.train] == [1, 51, 101, 130]


def test_a_subclass_with_an_after_step_of_its_own_does_not_wait() -> None:
    class Logs(Every):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            super().after_step(run, step, out)

    class Waits(Logs):
        def next_step(self, step: int) -> ec.Wake:
            return replace(super().next_step(step), within=4)

    log: list[Any] = []
    drive([Logs(20, 19, log)], steps=60, behind=1000)
    assert [entry[3] - entry[1] for entry in log if entry[0] == 20] == [0] * 4
    log.clear()
    drive([Waits(20, 19, log)], steps=60, behind=1000)
    assert [entry[3] - entry[1] for entry in log if entry[0] == 20] == [4, 4, 4, 0]


def test_an_attribute_named_like_an_earlier_member_is_refused() -> None:
    with pytest.raises(HookError, match=r"Client: `slack` is now Wake\(within=...\) returned by next_step"):

        class Client(Every):
            slack = "https://chat.example"


def test_a_hook_of_the_clock_is_called_once_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Timed(ec.Hook):
        def __init__(self) -> None:
            self.at: float | None = 3.5
            self.calls: list[Any] = []

        def next_step(self, step: int) -> ec.Wake:
            return ec.Wake(time=self.at, within=5)

        def after_step(self, run: Any, step: int, out: Any) -> None:
            self.calls.append((step, run.step))
            self.at = None if self.at is None or self.at > 20 else self.at + 20

    now = 0.0
    monkeypatch.setattr("estimator_core._loop.hook_schedule.time.monotonic", lambda: now)

    def loss(step: int) -> Any:
        nonlocal now
        now = float(step)
        return np.float32(step)

    hook = Timed()
    fake_drive([hook], steps=40, outputs={"loss": loss}, late=True)
    assert hook.calls == [(5, 10), (25, 30)]


def test_hooks_do_not_wait_for_a_slow_input(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(batches_module, "perf_counter", lambda: now)

    def slow(count: int) -> Iterator[Any]:
        nonlocal now
        for left in range(count, 0, -1):
            now += 0.02 if left > 21 else 0.0005
            yield Batch

    log: list[Any] = []
    drive([Every(10, 9, log)], steps=50, behind=5, source=slow)
    assert [entry[3] - entry[1] for entry in log if entry[0] == 10] == [0, 0, 0, 5, 5, 0]


@pytest.mark.parametrize(("seconds_a_step", "looks"), [(1.0, 6), (0.001, 3)])
def test_points_that_wait_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, seconds_a_step: float, looks: int
) -> None:
    asked: list[int] = []
    now = itertools.count(start=1.0, step=seconds_a_step)
    monkeypatch.setattr(hook_schedule_module, "time", SimpleNamespace(monotonic=lambda: next(now)))

    def look_after() -> bool:
        asked.append(len(asked))
        return len(asked) % 3 == 0

    drive([Every(20, 0, [])], steps=30, behind=0, look_after=look_after)
    # After the steps 1 and 20, three times each. If a step takes a millisecond, at every tenth step.
    assert len(asked) == looks


class AsksFor(ec.Hook):
    """Requests control at given steps and may be called late. It records the steps at which it was called."""

    def __init__(self, steps: list[int], within: int) -> None:
        self.steps, self.within = steps, within
        self.called: list[int] = []

    def next_step(self, step: int) -> ec.Wake | None:
        left = [wanted for wanted in self.steps if wanted > step]
        return ec.Wake(step=left[0], within=self.within) if left else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.called.append(step)


def test_a_hook_that_waits_may_still_ask_for_the_last_step() -> None:
    hook = AsksFor([10, 20], within=100)
    fake_drive([hook], steps=20, late=True)
    assert hook.called == [10, 20]


def test_a_hook_that_waits_may_still_ask_for_the_step_of_the_next_hook() -> None:
    hook, other = AsksFor([5, 8], within=100), AsksFor([8], within=0)
    fake_drive([hook, other], steps=20, late=True)
    assert (hook.called, other.called) == ([5, 8], [8])


@pytest.mark.parametrize("wanted", [3, 2, "4"])
def test_a_step_that_is_none_or_is_not_later_is_refused(wanted: Any) -> None:
    class Wrong(ec.Hook):
        def next_step(self, step: int) -> Any:
            return wanted if step else 3

    with pytest.raises(HookError, match=r"Wrong.*: next_step\(3\) returned .*must return a later step"):
        fake_drive([Wrong()], steps=6)


def test_a_state_that_is_no_mapping_names_its_hook(tmp_path: Any) -> None:
    class Forgets(ec.Hook):
        def state(self) -> Any: ...

    estimator = tiny_estimator(tmp_path)
    with pytest.raises(HookError, match=r"Forgets from .*: state\(\) returned None; it must return a map") as caught:
        estimator.train(tiny_input_fn(), steps=1, hooks=[Forgets()])
    assert [note for note in caught.value.__notes__ if "Forgets" not in note] == []
