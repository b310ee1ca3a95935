"""Tests that the rewritten loops call hooks, draw batches and dispatch as the loops before them did.

`page_recording.json.gz` holds the logs of the previous version for 5,000 random calls. Three differences are intended,
and the cases leave them out or name them:

- In a prediction `before_step` sees the batch it comes before; before, it saw the previous batch.
- If several batches form a dispatch of an evaluation or a prediction, clocks are read before it is drawn, as in
  training, and not afterwards. No case of these loops has both.
- An evaluation that is interrupted before its first batch has not created its hooks. The caller does this now
  (`evaluate_call`), and the cases begin after it.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from estimator_core._loop import batches as batches_module
from estimator_core._loop import dispatch, eval_total, hook_schedule, unobserved_steps
from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.agreement import Decisions as DecisionsOfCore
from estimator_core._loop.batches import Batches
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import InFlightLimiter
from estimator_core._loop.eval_total import EvalTotal
from estimator_core._loop.evaluate import evaluate_loop
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.predict import predict_loop
from estimator_core._loop.predictions import Predictions
from estimator_core._loop.run import LoopRun
from estimator_core._loop.steps_per_dispatch import TunedBatches
from estimator_core._loop.train import train_loop
from estimator_core._step.state import FIRST_BAD_STEP
from estimator_core.errors import PreemptedError
from estimator_core.hooks import Hook, Wake
from tests.loop.page_cases import (
    COUNTS,
    MODES,
    Acts,
    Carried,
    Case,
    Device,
    Interruption,
    Summaries,
    World,
    case_of,
    described,
    digest,
    log_of,
)
from tests.loop.page_cases import batches as batches_of

RECORDED: Any = json.loads(gzip.decompress(Path(__file__).with_name("page_recording.json.gz").read_bytes()))
#: The number of cases per loop in the ordinary run.
ORDINARY = {"train": 200, "evaluate": 60, "predict": 60}
WIDTH = 12


class Acting(Hook):
    """Acts as its case specifies."""

    name = "Recorded"

    def __init__(self, acts: Acts) -> None:
        self.acts = acts

    def begin(self, run: Any) -> None:
        if self.acts.ways.follows:
            run.follow("loss")

    def after_create(self, run: Any) -> None:
        self.acts.created(run)

    def before_step(self, run: Any, step: int) -> None:
        self.acts.before(run, step)

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.acts.after(run, step, out)

    def next_step(self, step: int) -> Wake:
        ways = self.acts.ways
        return Wake(step=self.acts.step_after(step), time=self.acts.alarm, within=ways.within, joins=ways.joins)

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        self.acts.values(run, steps, values)

    def end(self, run: Any) -> None:
        self.acts.ended(run)

    def state(self) -> Any:
        return {"seen": self.acts.seen}


class Decisions(DecisionsOfCore):
    """Records where hooks had control, which several processes would have to know."""

    def __init__(self, case: Case, world: World) -> None:
        super().__init__(Interruption(case, world))  # type: ignore[arg-type]
        self._case, self._world = case, world

    def agree(self, run: Any, wake: float, waker: Any) -> None:
        if not self._case.alone:
            self._world.log.append(["agree", run.step])


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Disables logging, because logs of thousands of runs have no use."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("mode", MODES)
def test_calls_are_as_recorded(mode: str) -> None:
    for seed in RECORDED["full"][mode]:
        assert log_of(DRIVES[mode], mode, int(seed)) == expected(mode, int(seed)), case_of(mode, int(seed))


@pytest.mark.parametrize("mode", MODES)
def test_some_hundred_calls_are_as_recorded(mode: str) -> None:
    assert differences(mode, range(ORDINARY[mode])) == []


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_all_calls_are_as_recorded(mode: str) -> None:
    assert differences(mode, range(COUNTS[mode])) == []


def test_every_call_was_recorded() -> None:
    assert {mode: len(digests) // WIDTH for mode, digests in RECORDED["digests"].items()} == COUNTS


def differences(mode: str, seeds: range) -> list[int]:
    digests = RECORDED["digests"][mode]
    return [s for s in seeds if digest(log_of(DRIVES[mode], mode, s)) != digests[s * WIDTH : (s + 1) * WIDTH]]


def expected(mode: str, seed: int) -> Any:
    return RECORDED["full"][mode][str(seed)]


def not_at_the_start(look_after: Any) -> Any:
    """Handles an intended difference: the schedule checks once before hooks had control, because the first checkpoint
    may wait to be announced.
    """
    looked = False

    def look() -> bool:
        nonlocal looked
        first, looked = not looked, True
        return True if first else look_after()

    return look


def drive_train(case: Case, world: World) -> Any:
    with faked(world):
        run, calls = made(case, world)
        live: Any = DeviceState(state=Carried(np.zeros(8, np.uint32)))  # type: ignore[arg-type]
        device, decisions = Device(case, world, FIRST_BAD_STEP), Decisions(case, world)
        batches = Batches(batches_of(case, world), np.stack, run.time_spent, alone=case.alone)
        batches.group(case.k)
        schedule = HookSchedule(
            calls,
            run,
            batches=batches,
            account=run.time_spent,
            agreement=decisions,
            look_after=not_at_the_start(run.summaries.encode_if_due),
        )
        programs: Any = {
            count: lambda state, features, labels, weights, count=count: device.dispatch(state, features, count)
            for count in {1, case.k}
        }

        def loop() -> Any:
            schedule.start(live)
            return train_loop(run, live, batches, programs, schedule, InFlightLimiter(), decisions)

        return [*ended(schedule, run, loop), run.summaries.asked, live.position, live.step]


def drive_evaluate(case: Case, world: World) -> Any:
    with faked(world):
        run, calls = made(case, world)
        device, decisions = Device(case, world, 0), Decisions(case, world)

        class Step:
            """The program of an evaluation."""

            def __call__(self, total: Any, state: Any, features: Any, labels: Any, weights: Any) -> Any:
                value = device.batch(features, 1)
                return SimpleNamespace(
                    accumulated={"sum": (total or {"sum": 0.0})["sum"] + float(value)},
                    host_metrics={"host": [float(value)]} if case.host else {},
                    outputs={"loss": np.float32(value)},
                )

            def totals(self, total: Any) -> Any:
                return total or {}

            def several(self, total: Any, state: Any, features: Any, labels: Any, weights: Any) -> Any:
                return {"sum": total["sum"] + float(device.batch(features, len(features)).sum())}

        batches, schedule = grouped(case, world, run, calls)
        first = batches.first()
        run.live = DeviceState(state=Carried(np.zeros(8, np.uint32)))  # type: ignore[arg-type]
        step: Any = Step()

        def loop() -> Any:
            decisions.break_off(run)
            run.batch, run.batch_size = first, first.size
            schedule.start()
            return evaluate_loop(run, batches, EvalTotal(run, step), schedule, decisions, steps=case.last)

        return ended(schedule, run, loop)


def drive_predict(case: Case, world: World) -> Any:
    with faked(world):
        run, calls = made(case, world)
        device = Device(case, world, 0)
        batches, schedule = grouped(case, world, run, calls)
        first = batches.first()
        run.batch, run.batch_size = first, first.size
        program = Predictions(
            lambda one: {"loss": np.asarray(device.batch(one.features, one.steps))}, lambda dispatch: False
        )

        def loop() -> Any:
            schedule.start()
            given = predict_loop(run, batches, program, schedule, total_on_host)
            for taken, predictions in enumerate(given, 1):
                world.log.append(["given", np.asarray(predictions["loss"]).tolist()])
                if taken == case.taken:
                    given.close()  # type: ignore[attr-defined]
            return run.stop_reason

        return ended(schedule, run, loop)


def total_on_host(dispatch: Any, predictions: Any) -> Iterator[Any]:
    """Yields the predictions of each batch of a dispatch."""
    if dispatch.steps == 1:
        yield predictions
    else:
        yield from ({"loss": each} for each in predictions["loss"])


def grouped(case: Case, world: World, run: Any, calls: HookCalls) -> tuple[TunedBatches, HookSchedule]:
    """Returns the batches of an evaluation or of predictions, and when its hooks have control."""
    batches = TunedBatches(batches_of(case, world), np.stack, run.time_spent, case.k)
    schedule = HookSchedule(
        calls, run, batches=batches, account=run.time_spent, agreement=NOBODY_ASKS, alone_at_wake=True
    )
    return batches, schedule


def made(case: Case, world: World) -> tuple[Any, HookCalls]:
    """Returns the run of a case and its hooks."""
    context: Any = SimpleNamespace(
        name=None,
        mode={"evaluate": "eval", "predict": "infer"}.get(case.mode, case.mode),
        estimator=None,
        config=None,
        params=None,
        directory=Path("unused"),
        summaries=Summaries(),
    )
    run: Any = LoopRun(context, DeviceState(), last_step=case.last)
    run.output_names = frozenset({"loss"})
    calls = HookCalls([Acting(Acts(world, ways)) for ways in case.hooks], run)
    calls.begin()
    return run, calls


def ended(schedule: HookSchedule, run: Any, loop: Any) -> list[Any]:
    """Returns the result or the error of the loop, and then the states of the hooks."""
    error: BaseException | None = None
    try:
        result = loop()
    except (ValueError, PreemptedError) as raised:
        error, result = raised, described(raised)
    with contextlib.suppress(ValueError):
        schedule.end(error)
    return [result, run.step, schedule.states()]


@contextlib.contextmanager
def faked(world: World) -> Iterator[None]:
    """Replaces the clock of the machine with that of the case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches_module, "perf_counter", world.time)
        patch.setattr(unobserved_steps, "monotonic", world.time)
        patch.setattr(hook_schedule, "time", SimpleNamespace(monotonic=world.time))
        patch.setattr(dispatch, "time", SimpleNamespace(perf_counter=world.time))
        patch.setattr(eval_total, "compute_metrics", dict)
        patch.setattr(eval_total, "merge_metrics", lambda left, right: {n: [*left[n], *right[n]] for n in left})
        yield


DRIVES = {"train": drive_train, "evaluate": drive_evaluate, "predict": drive_predict}
