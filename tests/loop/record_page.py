"""Records the logs of the loops as of commit 2061ba5, before the loops were rewritten.

    python tests/loop/record_page.py

Run it in an environment that has estimator-core as of that commit. It writes `page_recording.json.gz` to its own
folder, with a digest for each case and the full logs of a few. `test_page.py` compares them.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from estimator_core.loop import dispatch, evaluate, hook_runner, pace, train
from estimator_core.loop.dispatch import Dispatcher
from estimator_core.loop.evaluate import evaluate_loop
from estimator_core.loop.groups import Groups
from estimator_core.loop.hook_runner import HookRunner
from estimator_core.loop.live import LiveState
from estimator_core.loop.predict import predict_batches
from estimator_core.loop.run import LoopRun
from estimator_core.loop.train import train_loop
from estimator_core.step.state import FIRST_BAD_STEP
from page_cases import (
    COUNTS,
    MODES,
    Acts,
    Carried,
    Case,
    Device,
    Interruption,
    Summaries,
    World,
    described,
    digest,
    log_of,
)
from page_cases import batches as batches_of

from estimator_core.hooks import Hook

FULL = {mode: range(0, 40, 4) for mode in MODES}


class Recorded(Hook):
    """The hook contract of that commit."""

    name = "Recorded"

    def __init__(self, acts: Acts) -> None:
        self.acts = acts
        if acts.ways.joins:
            self.comes_along = True

    def after_create(self, run: Any) -> None:
        self.acts.created(run)

    def before_step(self, run: Any, step: int) -> None:
        self.acts.before(run, step)

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.acts.after(run, step, out)

    def next_step(self, step: int) -> int | None:
        return self.acts.step_after(step)

    def slack(self, step: int) -> int:
        return self.acts.ways.within

    def values(self) -> Any:
        return ("loss",) if self.acts.ways.follows else ()

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        self.acts.values(run, steps, values)

    def end(self, run: Any) -> None:
        self.acts.ended(run)

    def state(self) -> Any:
        return {"seen": self.acts.seen}


class Clocked(Recorded):
    """A hook with a clock. The loop reads clocks only if a hook overrides `next_time`."""

    def next_time(self) -> float | None:
        return self.acts.alarm


class Decisions:
    """The decisions of a call: whether a signal came, and the steps at which hooks had control."""

    def __init__(self, case: Case, world: World, runner: HookRunner) -> None:
        self._case, self._world, self._runner = case, world, runner
        self._interruption = Interruption(case, world)

    @property
    def requested(self) -> bool:
        return self._interruption.requested

    def look_at_clock(self) -> None:
        self._runner.look_at_clock()

    def settle(self, run: Any) -> None:
        if not self._case.alone:
            self._world.log.append(["agree", run.step])


def main() -> None:
    """Writes the recording."""
    logging.disable(logging.CRITICAL)
    recording: dict[str, Any] = {"commit": "2061ba5", "digests": {}, "full": {}}
    for mode in MODES:
        logs = [log_of(DRIVES[mode], mode, seed) for seed in range(COUNTS[mode])]
        recording["digests"][mode] = "".join(digest(log) for log in logs)
        recording["full"][mode] = {str(seed): logs[seed] for seed in FULL[mode]}
    target = Path(__file__).with_name("page_recording.json.gz")
    target.write_bytes(gzip.compress(json.dumps(recording).encode(), mtime=0))


def drive_train(case: Case, world: World) -> Any:
    with faked(world):
        run, runner = made(case, world)
        live: Any = LiveState(state=Carried(np.zeros(8, np.uint32)))  # type: ignore[arg-type]
        device = Device(case, world, FIRST_BAD_STEP)
        dispatcher = Dispatcher(batches_of(case, world), case.k, np.stack, alone=case.alone)
        runner.steps_per_dispatch = case.k

        def program(count: int) -> Any:
            return lambda state, features, labels, weights: device.dispatch(state, features, count)

        def loop() -> Any:
            runner.after_create()
            return train_loop(run, runner, dispatcher, program, live, Decisions(case, world, runner))

        result = ended(runner, run, loop)
        return [*result, run.summaries.asked, live.position, live.step]


def drive_evaluate(case: Case, world: World) -> Any:
    with faked(world):
        run, runner = made(case, world)
        device, interruption = Device(case, world, 0), Interruption(case, world)

        class Step:
            """The program of an evaluation."""

            hooks = ()
            output_kinds = MappingProxyType({"loss": "scalar"})
            fetches = frozenset[str]()

            def prepare(self, *data: Any) -> None:
                pass

            def __call__(self, total: Any, state: Any, features: Any, labels: Any, weights: Any) -> Any:
                value = device.batch(features, 1)
                host = {"host": [float(value)]} if case.host else {}
                return SimpleNamespace(
                    accumulated={"sum": (total or {"sum": 0.0})["sum"] + float(value)},
                    host_metrics=host,
                    outputs={"loss": np.float32(value)},
                )

            def several(self, total: Any, state: Any, features: Any, labels: Any, weights: Any) -> Any:
                return {"sum": total["sum"] + float(device.batch(features, len(features)).sum())}

        source = batches_of(case, world)
        first = next(source)
        run.live = LiveState(state=Carried(np.zeros(8, np.uint32)))  # type: ignore[arg-type]
        groups = Groups(first, source, np.stack, asked=case.k)

        def loop() -> Any:
            return evaluate_loop(
                run, runner, groups, lambda names: Step(), steps=case.last, asked_to_stop=lambda: interruption.requested
            )

        return ended(runner, run, loop)


def drive_predict(case: Case, world: World) -> Any:
    with faked(world):
        run, runner = made(case, world)
        device, source = Device(case, world, 0), batches_of(case, world)
        first = next(source)
        run.batch, run.batch_size = first, first.size
        groups = Groups(first, source, np.stack, asked=case.k)
        run.step = 0

        def loop() -> Any:
            runner.after_create()
            given = predict_batches(
                run,
                runner,
                groups,
                lambda one: {"loss": np.asarray(device.batch(one.features, one.steps))},
                transforms=lambda: (),
                has_effects=lambda one: False,
            )
            for taken, predictions in enumerate(given, 1):
                world.log.append(["given", np.asarray(predictions["loss"]).tolist()])
                if taken == case.taken:
                    given.close()
            return run.stop_reason

        return ended(runner, run, loop)


def made(case: Case, world: World) -> Any:
    """Returns the run of a case and its hooks."""
    run: Any = LoopRun(
        mode={"evaluate": "eval", "predict": "infer"}.get(case.mode, case.mode),
        estimator=None,
        config=None,  # type: ignore[arg-type]
        params=None,
        model_dir=Path("unused"),
        summaries=Summaries(),  # type: ignore[arg-type]
        live=LiveState(),
        last_step=case.last,
    )
    run.output_names = frozenset({"loss"})
    hooks = [(Recorded if ways.period is None else Clocked)(Acts(world, ways)) for ways in case.hooks]
    runner = HookRunner(hooks, run)
    runner.begin()
    return run, runner


def ended(runner: HookRunner, run: Any, loop: Any) -> list[Any]:
    """Returns the result or the error of the loop, and then the states of the hooks."""
    error: BaseException | None = None
    try:
        result = loop()
    except Exception as raised:
        error, result = raised, described(raised)
    with contextlib.suppress(Exception):
        runner.end(error)
    return [result, run.step, runner.states()]


@contextlib.contextmanager
def faked(world: World) -> Any:
    """Replaces the clock of the machine with that of the case."""
    for module in (train, dispatch):
        module.perf_counter = world.time
    hook_runner.time = SimpleNamespace(monotonic=world.time)
    pace.time = SimpleNamespace(perf_counter=world.time)
    evaluate.compute_metrics = dict
    evaluate.merge_metrics = lambda left, right: {name: [*left[name], *right[name]] for name in left}
    yield


DRIVES = {"train": drive_train, "evaluate": drive_evaluate, "predict": drive_predict}

if __name__ == "__main__":
    main()
