"""One `Estimator.predict` call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._inputs import open_input
from estimator_core._loop.agreement import NOBODY_ASKS
from estimator_core._loop.batches import Batches
from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.dispatch import single as one_batch
from estimator_core._loop.engine import Engine
from estimator_core._loop.feed import feed
from estimator_core._loop.hook_calls import HookCalls
from estimator_core._loop.hook_order import in_order
from estimator_core._loop.hook_schedule import HookSchedule
from estimator_core._loop.live import LiveState
from estimator_core._loop.outputs import check_fetches
from estimator_core._loop.predict import predict_loop
from estimator_core._loop.predictions import Predictions, check_predict_keys, on_host, single_examples
from estimator_core._loop.run import LoopRun
from estimator_core._summaries import NO_SUMMARIES
from estimator_core.modes import ModeKeys


def predict_call(
    *,
    estimator: Any,
    engine: Engine,
    input_fn: Callable[..., Any],
    predict_keys: Sequence[str] | None,
    hooks: Sequence[Any],
    state: Callable[[Any], Any],
    yield_single_examples: bool,
    plugins: Any,
) -> Iterator[Any]:
    """A generator of predictions; everything happens after the first `next`, and `close()` releases what it opened."""
    config = engine.config
    error: BaseException | None = None
    run = LoopRun(
        mode=ModeKeys.PREDICT,
        estimator=estimator,
        config=config,
        params=engine.model_fn.params,
        model_dir=Path(estimator.model_dir),
        summaries=NO_SUMMARIES,
        live=LiveState(),
    )
    source = open_input(
        run.transformed(input_fn),
        mode=ModeKeys.PREDICT,
        params=engine.model_fn.params,
        config=config,
        input_context=engine.input_context,
    )
    fed = feed(source, engine.placement, config.prefetch, engine.peers)
    batches = engine.batches(fed, ModeKeys.PREDICT, run.time_spent)
    calls = HookCalls(in_order([*plugins.run_hooks(run), *hooks]), run)
    schedule = HookSchedule(
        calls, run, batches=batches, account=run.time_spent, agreement=NOBODY_ASKS, alone_at_wake=True
    )
    plugins.run_start(run)
    try:
        calls.begin()
        first = batches.first()
        if first is not None:
            with engine.placement.context():
                snapshot = state(first)
            yield from _predict(
                run, calls, schedule, engine, snapshot, first, batches, predict_keys, yield_single_examples
            )
    except GeneratorExit:
        raise
    except BaseException as raised:
        error, run.failed = raised, True
        raise
    finally:
        fed.close()
        batches.close()
        try:
            schedule.end(error)
        finally:
            plugins.run_end(run, error)


def _predict(
    run: LoopRun,
    calls: HookCalls,
    schedule: HookSchedule,
    engine: Engine,
    snapshot: Any,
    first: Any,
    batches: Batches,
    predict_keys: Sequence[str] | None,
    single: bool,
) -> Iterator[Any]:
    step = engine.predict_step
    run.live = LiveState(state=snapshot, step=int(np.asarray(snapshot.clock)[0]))

    def compute(dispatch: Dispatch) -> Any:
        program = step if dispatch.steps == 1 else step.several
        with engine.placement.context():
            return program(snapshot, dispatch.features, dispatch.weights)

    ready = compute(one_batch(first))
    names = list(ready) if isinstance(ready, Mapping) else ["predictions"]
    program = Predictions(
        compute,
        lambda dispatch: step.has_effects(snapshot, dispatch.features, dispatch.weights),
        first=ready,
        keys=check_predict_keys(predict_keys, ready),
    )
    calls.add(step.hooks)
    calls.begin()
    run.output_kinds = dict.fromkeys(names, "tensor")
    run.output_names = frozenset(names)
    check_fetches(run.seal_fetches(), names)
    run.step = 0
    run.batch, run.batch_size = first, first.size
    schedule.start()
    given = predict_loop(
        run, batches, program, schedule, lambda dispatch, value: on_host(dispatch, value, step.prediction_transforms)
    )
    yield from single_examples(given) if single else given
