"""Drives hooks with the real training loop and schedule of hooks, and a model that only counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimator_core._loop.agreement import Decisions
from estimator_core._loop.batches import Batches
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import InFlightLimiter
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.run import LoopRun
from estimator_core._loop.train import train_loop
from estimator_core._step.state import FIRST_BAD_STEP
from estimator_core._summaries import NO_SUMMARIES
from estimator_core.config import RunConfig

Outputs = Mapping[str, Callable[[int], Any]]


def loss_of(step: int) -> float:
    return 1.0 / (1 + step)


@dataclass(frozen=True, kw_only=True)
class Driven:
    """A finished call: its run, and the states of the hooks that a checkpoint at its end would keep."""

    run: LoopRun
    states: dict[str, Any]
    stopped: str


def drive(
    hooks: Sequence[Any],
    *,
    steps: int,
    start: int = 0,
    k: int = 1,
    outputs: Outputs | None = None,
    kinds: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
    summaries: Any = NO_SUMMARIES,
    model_dir: Path = Path("unused"),
    resume: Mapping[str, Any] | None = None,
    estimator: Any = None,
    config: RunConfig | None = None,
) -> Driven:
    """Runs `steps` steps from the global step `start`. `resume` holds the states of the hooks of the interrupted
    call.
    """
    compute: dict[str, Callable[[int], Any]] = {"loss": loss_of, **(outputs or {})}
    live = DeviceState(state=SimpleNamespace(clock=np.zeros(4, np.uint32)), step=start)  # type: ignore[arg-type]
    context: Any = SimpleNamespace(
        mode="train",
        name=None,
        estimator=estimator
        or SimpleNamespace(eval_dir=lambda name=None: str(model_dir / (f"eval_{name}" if name else "eval"))),
        config=config or RunConfig(model_dir=str(model_dir)),
        params=None,
        directory=model_dir,
        summaries=summaries,
    )
    run = LoopRun(context, live, last_step=start + steps)
    run.output_kinds = {"loss": "scalar", **dict.fromkeys(compute, "scalar"), **(kinds or {})}
    run.output_names = frozenset([*compute, "first_bad_step"])
    run.texts = dict(texts or {})
    run.resumed = resume is not None
    calls, decisions = HookCalls(hooks, run), Decisions()
    position = [start]

    def program(count: int) -> Any:
        def dispatch(state: Any, features: Any, labels: Any, weights: Any) -> Any:
            first = position[0] + 1
            position[0] += count
            steps = range(first, first + count)
            values = {name: [fn(step) for step in steps] for name, fn in compute.items()}
            bad = [step for step, loss in zip(steps, values["loss"], strict=True) if not np.isfinite(loss)]
            if bad and not state.clock[FIRST_BAD_STEP]:
                state.clock[FIRST_BAD_STEP] = bad[0]
            arrays = {name: jnp.asarray(rows if count > 1 else rows[0]) for name, rows in values.items()}
            return state, {name: array for name, array in arrays.items() if not np.isnan(array).all() or name == "loss"}

        return dispatch

    batch = SimpleNamespace(features=np.zeros(1), labels=None, weights=None, size=8, position=None)
    batches = Batches(iter(lambda: batch, None), lambda trees: trees[0], run.time_spent)
    batches.group(k)
    schedule = HookSchedule(calls, run, batches=batches, account=run.time_spent, agreement=decisions)
    error: BaseException | None = None
    stopped = "not started"
    try:
        calls.begin()
        calls.restore(json.loads(json.dumps(resume or {})))
        schedule.start(live)
        programs = {count: program(count) for count in {1, k}}
        stopped = train_loop(run, live, batches, programs, schedule, InFlightLimiter(), decisions)
    except BaseException as raised:
        error = raised
        raise
    finally:
        schedule.end(error)
    return Driven(run=run, states=schedule.states(), stopped=stopped)
