"""One `Estimator.predict` call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_core._inputs import Batch, InputFn, open_input
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import Dispatch
from estimator_core._loop.dispatch import single as one_batch
from estimator_core._loop.evaluate_call import groups_of
from estimator_core._loop.feed import Feed, feed
from estimator_core._loop.hook_runner import HookRunner
from estimator_core._loop.inference import InferenceStates
from estimator_core._loop.input_part import input_context
from estimator_core._loop.outputs import check_fetches
from estimator_core._loop.predict import check_predict_keys, predict_batches, single_examples
from estimator_core._loop.programs import Programs
from estimator_core._loop.run import LoopRun
from estimator_core._loop.shared_feed import SharedFeed
from estimator_core._step import TrainState
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys


def predict_call(
    context: RunContext,
    *,
    programs: Programs,
    states: InferenceStates,
    input_fn: InputFn,
    predict_keys: Sequence[str] | None,
    hooks: Sequence[Hook],
    checkpoint_path: str | None,
    yield_single_examples: bool,
) -> Iterator[Any]:
    """The predictions of one call; `close()` releases what it opened.

    Args:
        context: of the call.
        programs: of the Estimator.
        states: gives the state to predict with, once the first batch is known.
        input_fn: gives batches.
        predict_keys: keys of a dict of predictions to compute; None: all.
        hooks: of the call.
        checkpoint_path: to predict with instead of the newest state.
        yield_single_examples: one example at a time, or whole batches.
    """
    devices, config = context.devices, context.config
    error: BaseException | None = None
    run = LoopRun(
        mode=ModeKeys.PREDICT,
        estimator=context.estimator,
        config=config,
        params=context.params,
        model_dir=context.directory,
        summaries=context.summaries,
        live=DeviceState(),
    )
    run.context = context
    source = open_input(
        run.transformed(input_fn),
        mode=ModeKeys.PREDICT,
        params=context.params,
        config=config,
        input_context=input_context(devices),
    )
    batches = feed(source, devices.placement, config.prefetch, devices.processes)
    runner = HookRunner([*context.plugins.run_hooks(run), *hooks], run)
    context.plugins.run_start(run)
    try:
        runner.begin()
        first: Batch | None = next(batches, None)
        if first is not None:
            with devices.placement.context():
                snapshot = states.get(context, first, checkpoint_path)
            found = _predict(context, programs, run, runner, snapshot, first, batches, predict_keys)
            yield from single_examples(found) if yield_single_examples else found
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
            context.plugins.run_end(run, error)


def _predict(
    context: RunContext,
    programs: Programs,
    run: LoopRun,
    runner: HookRunner,
    snapshot: TrainState,
    first: Batch,
    rest: Feed | SharedFeed,
    predict_keys: Sequence[str] | None,
) -> Iterator[Any]:
    """Predictions of each batch, on the host."""
    placement = context.devices.placement
    step = programs.predict_step(context.devices)
    run.live = DeviceState(state=snapshot, step=int(np.asarray(snapshot.clock)[0]))

    def predict(dispatch: Dispatch) -> Any:
        program = step if dispatch.steps == 1 else step.several
        with placement.context():
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
    groups = groups_of(context, programs, first, rest)
    try:
        yield from predict_batches(
            run,
            runner,
            groups,
            wanted,
            transforms=lambda: step.prediction_transforms,
            has_effects=lambda dispatch: step.has_effects(snapshot, dispatch.features, dispatch.weights),
        )
    finally:
        groups.close()
