"""Random calls of the three loops, with their hooks, inputs and steps per dispatch, and the log of each call.

This module does not import the framework, so that the same cases run with any version of it. `record_page.py` recorded
them with the version before the loops were rewritten.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

MODES = ("train", "evaluate", "predict")
COUNTS = {"train": 3000, "evaluate": 1000, "predict": 1000}


class Position(NamedTuple):
    """How far an input was read."""

    examples: int
    exhausted: bool


class FakeBatch(NamedTuple):
    """A numbered batch."""

    features: Any
    labels: Any
    weights: Any
    position: Position
    size: int


class World:
    """The shared state of one case: a clock, the dispatches made so far, and the log."""

    def __init__(self) -> None:
        self.now, self.made, self.log = 0.0, 0, list[Any]()

    def time(self) -> float:
        """Replaces `time.monotonic` and `time.perf_counter`."""
        return self.now


class Value:
    """An output that is ready `delay` dispatches after its own dispatch."""

    def __init__(self, world: World, value: Any, delay: int) -> None:
        self._world, self._born, self._delay = world, world.made, delay
        self.value = np.asarray(value, np.float32)
        self.nbytes = 4

    def is_ready(self) -> bool:
        return self._world.made >= self._born + self._delay

    def block_until_ready(self) -> Value:
        return self

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Ways:
    """The behaviour of one hook: its cadence, how late it may be called, what it follows, its clock, when it stops or
    fails.
    """

    number: int
    every: int | None
    start: int
    within: int
    reads: bool
    follows: bool
    joins: bool
    period: float | None
    stop_at: int | None
    fail_at: int | None
    stops_at_create: bool


@dataclass(frozen=True, kw_only=True)
class Case:
    """The settings of one call of a loop.

    Attributes:
        last: the step to stop at. None means the end of the input.
        count: the number of batches of the input. `odd`: those of another shape. `fails`: whether it ends with an
            error. `slow`: those that take long to draw.
        k: the steps or batches per dispatch.
        delay: the number of dispatches until an output is ready.
        alone: whether the process is the only one. False means one of several.
        bad: the step whose loss is not finite. 0 means none.
        host: the first batch of an evaluation from which the host computes metrics.
        broken_off: the number of draws after which the platform requests a stop.
        taken: the number of predictions that the caller reads before it closes the generator. None means all.
    """

    mode: str
    seed: int
    last: int | None
    count: int
    odd: frozenset[int]
    slow: frozenset[int]
    fails: bool
    k: int
    delay: int
    alone: bool
    bad: int
    host: bool
    broken_off: int | None
    taken: int | None
    hooks: tuple[Ways, ...]


def case_of(mode: str, seed: int) -> Case:
    """Returns the case with this number."""
    rng = random.Random(f"{mode} {seed}")
    train = mode == "train"
    last = rng.choice([None, rng.randrange(1, 300)]) if mode != "predict" else None
    count = rng.choice([rng.randrange(1, 300), rng.randrange(1, 60), 400])
    k = rng.choice([1, 1, 4, 20])
    odd = frozenset(rng.randrange(count) for _ in range(rng.choice([0, 0, 0, 1, 3])))
    slow = (
        frozenset(rng.sample(range(count), count // rng.choice([2, 10])))
        if train and rng.random() < 0.2
        else frozenset[int]()
    )
    clocks = train or k == 1
    return Case(
        mode=mode,
        seed=seed,
        last=last,
        count=count,
        odd=odd,
        slow=slow,
        fails=rng.random() < 0.15,
        k=k,
        delay=rng.randrange(0, 6),
        alone=not train or rng.random() < 0.9,
        bad=rng.choice([0, 0, 0, rng.randrange(1, 200)]),
        host=rng.random() < 0.15,
        broken_off=rng.choice([None] * 9 + [rng.randrange(1, 100)]),
        taken=rng.choice([None, None, None, rng.randrange(1, 60)]),
        hooks=tuple(_ways(rng, number, train=train, clocks=clocks) for number in range(rng.randrange(0, 5))),
    )


def _ways(rng: random.Random, number: int, *, train: bool, clocks: bool) -> Ways:
    every = rng.choice([None, 1, 2, 3, 7, 10, 20, 50, 50])
    return Ways(
        number=number,
        every=every,
        start=rng.randrange(0, 5),
        within=min(rng.choice([0, 0, 1, 5, 100]), 10_000 if every is None else every - 1) if train else 0,
        reads=rng.random() < 0.8,
        follows=rng.random() < 0.2,
        joins=rng.random() < 0.15,
        period=rng.choice([0.03, 0.3, 1.7]) if clocks and rng.random() < 0.15 else None,
        stop_at=rng.choice([None] * 9 + [rng.randrange(1, 200)]),
        fail_at=rng.choice([None] * 30 + [rng.randrange(1, 200)]),
        stops_at_create=rng.random() < 0.01,
    )


class Acts:
    """The actions of a hook of a case, independent of the hook contract. The hooks of both versions are built on it."""

    def __init__(self, world: World, ways: Ways) -> None:
        self.world, self.ways = world, ways
        self.alarm: float | None = None
        self.seen = 0

    def created(self, run: Any) -> None:
        self.note("create", run.step)
        self._set_alarm()
        if self.ways.stops_at_create:
            run.request_stop(f"hook {self.ways.number} at once")

    def step_after(self, step: int) -> int | None:
        ways = self.ways
        if ways.every is None:
            return None
        return (step // ways.every + 1) * ways.every + (ways.start if step == 0 else 0)

    def before(self, run: Any, step: int) -> None:
        shown = None if run.mode == "infer" else np.asarray(run.batch.features).tolist()
        self.note("before", step, run.step, shown)

    def after(self, run: Any, step: int, out: Any) -> None:
        loss = float(np.asarray(out["loss"])) if self.ways.reads else None
        bad = int(out["first_bad_step"]) if self.ways.reads and "first_bad_step" in out else None
        self.note("after", step, run.step, loss, bad, [out.steps.start, out.steps.stop], run.batch_size)
        self.seen = step
        self._set_alarm()
        if self.ways.fail_at is not None and step >= self.ways.fail_at:
            raise ValueError(f"hook {self.ways.number} fails at {step}")
        if self.ways.stop_at is not None and step >= self.ways.stop_at:
            run.request_stop(f"hook {self.ways.number} at {step}")

    def values(self, run: Any, steps: range, values: Any) -> None:
        self.note("values", [steps.start, steps.stop], np.asarray(values["loss"]).tolist())

    def ended(self, run: Any) -> None:
        self.note("end", run.step)

    def note(self, *entry: Any) -> None:
        self.world.log.append([self.ways.number, *entry])

    def _set_alarm(self) -> None:
        self.alarm = None if self.ways.period is None else self.world.now + self.ways.period


def batches(case: Case, world: World) -> Iterator[FakeBatch]:
    """Yields the input of a case."""
    for number in range(case.count):
        world.now += 0.05 if number in case.slow else 0.0
        shape = (2,) if number in case.odd else (1,)
        world.log.append(["drawn", number])
        yield FakeBatch(np.full(shape, number, np.float32), None, None, Position(number + 1, False), 8 * shape[0])
    if case.fails:
        raise ValueError("a broken record")


class Carried:
    """A state on the device. The loop reads only its clock."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock

    def _replace(self, **_: Any) -> Carried:
        """Ignores the optimizer's state, because this state has none."""
        return self


class Device:
    """Computes the results of the programs of a case: the loss is twice the number of the batch."""

    def __init__(self, case: Case, world: World, first_bad_at: int) -> None:
        self.case, self.world, self.index = case, world, first_bad_at
        self.steps = 0

    def dispatch(self, carried: Any, features: Any, count: int) -> Any:
        """One dispatch of training."""
        case, world = self.case, self.world
        world.made, world.now = world.made + 1, world.now + 0.02
        clock = carried.clock.copy()
        self.steps += count
        if case.bad and self.steps >= case.bad and not clock[self.index]:
            clock[self.index] = case.bad
        rows = np.asarray(features)
        losses = rows[..., 0] * 2
        world.log.append(["dispatch", count, np.atleast_1d(losses).tolist()])
        return Carried(clock), {"loss": Value(world, losses, case.delay)}

    def batch(self, features: Any, count: int) -> Any:
        """One dispatch of an evaluation or of predictions."""
        world = self.world
        world.made, world.now = world.made + 1, world.now + 0.02
        values = np.asarray(features)[..., 0] * 2
        world.log.append(["dispatch", count, np.atleast_1d(values).tolist()])
        return values


class Interruption:
    """Requests a stop after a number of draws."""

    def __init__(self, case: Case, world: World) -> None:
        self._world, self._behind = world, case.broken_off
        self.reason = "preempted"

    @property
    def requested(self) -> bool:
        return self._behind is not None and sum(entry[0] == "drawn" for entry in self._world.log) >= self._behind


class Summaries:
    """A writer whose points need two more calls until they are written."""

    def __init__(self) -> None:
        self.asked = 0

    def encode_if_due(self) -> bool:
        self.asked += 1
        return self.asked % 3 == 0


def described(error: BaseException) -> list[Any]:
    """Describes an error, with the part of its notes after the name of the hook."""
    notes = [note.split(", ", 1)[-1] for note in getattr(error, "__notes__", ())]
    return ["error", type(error).__name__, str(error), notes]


def digest(log: Any) -> str:
    """Returns a digest of a log."""
    return hashlib.sha256(json.dumps(log, sort_keys=True).encode()).hexdigest()[:12]


Drive = Callable[[Case, World], Any]


def log_of(drive: Drive, mode: str, seed: int) -> Any:
    """Returns everything that a case does, as JSON: the log, then the result of the call."""
    world = World()
    result = drive(case_of(mode, seed), world)
    return json.loads(json.dumps([*world.log, ["result", result]]))
