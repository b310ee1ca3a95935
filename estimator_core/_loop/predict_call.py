"""One `Estimator.predict` call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._inputs import open_input
from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.dispatch import single as one_batch
from estimator_core._loop.engine import Engine
from estimator_core._loop.feed import feed
from estimator_core._loop.hook_runner import HookRunner
from estimator_core._loop.live import LiveState
from estimator_core._loop.outputs import check_fetches
from estimator_core._loop.predict import check_predict_keys, predict_batches, single_examples
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
    batches = feed(source, engine.placement, config.prefetch, engine.peers)
    runner = HookRunner([*plugins.run_hooks(run), *hooks], run)
    plugins.run_start(run)
    try:
        runner.begin()
        first = next(batches, None)
        if first is not None:
            with engine.placement.context():
                snapshot = state(first)
            yield from _predict(run, runner, engine, snapshot, first, batches, predict_keys, yield_single_examples)
    except GeneratorExit:
        raise
    except BaseException as raised:
        error, run.failed = raised, True
        raise
    finally:
        batches.close()
        try:
            runner.end(error)
        finally:
            plugins.run_end(run, error)


def _predict(
    run: LoopRun,
    runner: HookRunner,
    engine: Engine,
    snapshot: Any,
    first: Any,
    rest: Any,
    predict_keys: Sequence[str] | None,
    single: bool,
) -> Iterator[Any]:
    step = engine.predict_step
    run.live = LiveState(state=snapshot, step=int(np.asarray(snapshot.clock)[0]))

    def predict(dispatch: Dispatch) -> Any:
        program = step if dispatch.steps == 1 else step.several
        with engine.placement.context():
            return program(snapshot, dispatch.features, dispatch.weights)

    ready = [predict(one_batch(first))]
    names = list(ready[0]) if isinstance(ready[0], Mapping) else ["predictions"]
    keys = check_predict_keys(predict_keys, ready[0])

    def wanted(dispatch: Dispatch) -> Any:
        predictions = ready.pop() if ready else predict(dispatch)
        return predictions if keys is None else {name: predictions[name] for name in keys}

    runner.hooks.extend(hook for hook in step.hooks if not any(hook is known for known in runner.hooks))
    runner.begin()
    run.output_kinds = dict.fromkeys(names, "tensor")
    run.output_names = frozenset(names)
    check_fetches(run.seal_fetches(), names)
    run.step = 0
    run.batch, run.batch_size = first, first.size
    runner.after_create()
    groups = engine.groups(first, rest, ModeKeys.PREDICT)
    try:
        batches = predict_batches(
            run,
            runner,
            groups,
            wanted,
            transforms=lambda: step.prediction_transforms,
            has_effects=lambda dispatch: step.has_effects(snapshot, dispatch.features, dispatch.weights),
        )
        yield from single_examples(batches) if single else batches
    finally:
        groups.close()
