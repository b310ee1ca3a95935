"""A run without a model: drives hooks step by step with outputs of your choice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.time_spent import TimeSpent
from estimator_core.config import RunConfig
from estimator_core.hooks import Hook


class RecordedSummaries:
    """Keeps summaries instead of writing them: `recorded` is a list of (kind, tag, step, value)."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, int, Any]] = []

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Records a scalar."""
        self.recorded.append(("scalar", tag, step, float(value)))

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """Records a histogram."""
        self.recorded.append(("histogram", tag, step, values))

    def image(self, tag: str, image: Any, step: int) -> None:
        """Records an image."""
        self.recorded.append(("image", tag, step, image))

    def text(self, tag: str, text: str, step: int) -> None:
        """Records a text."""
        self.recorded.append(("text", tag, step, text))

    def flush(self) -> None:
        """Does nothing."""


@dataclass(kw_only=True)
class FakeRun:
    """A `Run` that nothing is behind: every property is a field you may set.

    Example:
        >>> run = FakeRun(mode="train", step=3)
        >>> run.request_stop("enough")
        >>> run.stop_reason
        'enough'
    """

    mode: str = "train"
    name: str | None = None
    step: int = 0
    first_step: int = 0
    last_step: int | None = None
    batch_size: int = 8
    batch: Any = None
    model_dir: Path = Path("model_dir")
    output_names: frozenset[str] = frozenset({"loss"})
    output_kinds: Mapping[str, str] = field(default_factory=lambda: {"loss": "scalar"})
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    resumed: bool = False
    failed: bool = False
    interrupted: bool = False
    stop_reason: str | None = None
    params: Any = None
    summaries: RecordedSummaries = field(default_factory=RecordedSummaries)
    config: RunConfig = field(default_factory=lambda: RunConfig(model_dir="model_dir"))
    fetched: list[str] = field(default_factory=list[str])
    followed: list[str] = field(default_factory=list[str])
    batch_functions: list[Any] = field(default_factory=list[Any])
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    flops: float | None = None
    assigned: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def estimator(self) -> Any:
        """An object with the attributes of an Estimator that hooks look at."""
        return SimpleNamespace(config=self.config, params=self.params, model_dir=str(self.model_dir))

    def request_stop(self, reason: str) -> None:
        """Ends `drive` after the dispatch under way; the first reason is kept."""
        self.stop_reason = self.stop_reason or reason

    def fetch(self, name: str) -> None:
        """Records the name."""
        self.fetched.append(name)

    def follow(self, name: str) -> None:
        """Records the name; `drive` delivers its values."""
        self.followed.append(name)

    def transform_batches(self, function: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        """Records the function."""
        self.batch_functions.append(function)

    def step_flops(self) -> float | None:
        """What `flops` says."""
        return self.flops

    def variables(self) -> dict[str, np.ndarray[Any, Any]]:
        """Two small variables."""
        return {"dense/kernel": np.full((2, 3), float(self.step), np.float32), "dense/bias": np.zeros(3, np.float32)}

    @property
    def state(self) -> Any:
        """The same variables, with nothing else."""
        return SimpleNamespace(variables={**self.variables(), **self.assigned}, model_state={}, opt_state=())

    def assign(self, values: Mapping[str, Any]) -> None:
        """Keeps the values for `state`."""
        self.assigned.update(values)

    @contextmanager
    def swapped(self, values: Mapping[str, Any]) -> Generator[None]:
        """Within, `state` shows the values."""
        before, self.assigned = self.assigned, {**self.assigned, **values}
        try:
            yield
        finally:
            self.assigned = before


def drive(
    hooks: Sequence[Hook],
    *,
    steps: int,
    run: FakeRun | None = None,
    outputs: Mapping[str, Callable[[int], Any]] | None = None,
    resume: Sequence[Mapping[str, Any]] = (),
    steps_per_dispatch: int = 1,
    late: bool = False,
    fail_at: int | None = None,
) -> FakeRun:
    """Runs hooks as the training loop does, by its own schedule of hooks, without a model.

    Args:
        hooks: the hooks, in order.
        steps: how many steps to make.
        run: the run they see; None: a new one that starts at step 0.
        outputs: value of each output at a global step; None: a falling "loss".
        resume: states to give back, one a hook, as when an interrupted run is resumed.
        steps_per_dispatch: most steps between two moments at which hooks can act; fewer where a hook asks for a step.
        late: call `after_step` as late as `Wake.within` of the hooks allows.
        fail_at: the global step at which the loop itself raises a RuntimeError.

    Raises:
        RuntimeError: at `fail_at`, after `end` of all hooks.
    """
    run = run or FakeRun()
    compute = dict(outputs) if outputs is not None else {"loss": lambda step: np.float32(1.0 / (1 + step))}
    run.output_names, run.output_kinds = frozenset(compute), dict.fromkeys(compute, "scalar")
    run.first_step, run.last_step, run.resumed = run.step, run.step + steps, bool(resume)
    calls = HookCalls(hooks, run)
    schedule = HookSchedule(
        calls,
        run,
        batches=_Batches(steps_per_dispatch, quick=late),
        account=TimeSpent(),
        agreement=NOBODY_ASKS,
        is_there=lambda values: False,
    )
    error: BaseException | None = None
    try:
        calls.begin()
        for hook, state in zip(hooks, resume, strict=False):
            hook.restore(state)
        schedule.start()
        while run.step < run.last_step and run.stop_reason is None:
            _dispatch(schedule, run, compute, steps_per_dispatch, fail_at)
        schedule.catch_up()
    except BaseException as raised:
        error, run.failed = raised, True
        raise
    finally:
        schedule.end(error)
    return run


class _Batches:
    """What the schedule asks of batches; slow ones keep hooks from being called late."""

    alone = True

    def __init__(self, k: int, *, quick: bool) -> None:
        self.k, self.quick = k, quick

    def prepare(self, room: float) -> None:
        """There is nothing to draw."""


def _dispatch(
    schedule: HookSchedule, run: FakeRun, compute: Mapping[str, Callable[[int], Any]], most: int, fail_at: int | None
) -> None:
    upto = run.step + int(min(most, schedule.room()))
    steps = range(run.step + 1, upto + 1)
    values = _outputs(steps, compute)
    dispatch = Dispatch(None, None, None, len(steps), SimpleNamespace(size=run.batch_size))
    shown = run.batch
    schedule.before(dispatch)
    run.batch = shown  # what the test has set
    if fail_at is not None and fail_at <= upto:
        raise RuntimeError(f"the loop fails at step {fail_at}")
    run.step = upto
    schedule.after(dispatch, values)


def _outputs(steps: range, compute: Mapping[str, Callable[[int], Any]]) -> dict[str, Any]:
    """Outputs of a dispatch as the loop hands them to hooks; nobody can write to their arrays."""
    rows = {name: [np.asarray(value(step)) for step in steps] for name, value in compute.items()}
    values = {name: np.stack(row) if len(row) > 1 else row[0].copy() for name, row in rows.items()}
    for value in values.values():
        value.flags.writeable = False
    return values
