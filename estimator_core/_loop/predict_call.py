"""One `Estimator.predict` call."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from estimator_core._inputs import Batch, InputFn
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.dispatch import Dispatch, check_fetches
from estimator_core._loop.dispatch import single as one_batch
from estimator_core._loop.inference_loop import InferenceLoop, inference_loop
from estimator_core._loop.inference_state import InferenceStates
from estimator_core._loop.predict import predict_loop
from estimator_core._loop.predictions import Predictions, check_predict_keys, on_host
from estimator_core._loop.programs import Programs
from estimator_core._loop.result_log import relative_to
from estimator_core._loop.run import LoopRun
from estimator_core._step import TrainState
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys


@dataclass(frozen=True, kw_only=True)
class PredictCall:
    """The checked arguments of a prediction, and the parts of the Estimator that it uses.

    Attributes:
        context: the context of the call.
        programs: the programs of the Estimator.
        states: the provider of the state for predictions, after the first batch is known.
        input_fn: the function that returns batches.
        predict_keys: the keys to compute of a dict of predictions. None or empty: all.
        hooks: the hooks of the call.
        checkpoint_path: the checkpoint to use instead of the newest state.
        single: whether to yield one example at a time instead of whole batches.
    """

    context: RunContext
    programs: Programs
    states: InferenceStates
    input_fn: InputFn
    predict_keys: Sequence[Hashable] | None
    hooks: Sequence[Hook]
    checkpoint_path: str | None
    single: bool

    def execute(self) -> Generator[Any, None, None]:
        """Yields the predictions. `close()` releases the resources of the call.

        Raises:
            ArgumentError: the processes make different calls.
        """
        context = self.context
        devices = context.devices
        given = {
            "keys": self.predict_keys,
            "checkpoint": relative_to(context.estimator.model_dir, self.checkpoint_path),
        }
        with context.together("predict", self.hooks, **given), contextlib.ExitStack() as cleanup:
            context.plugins.open_call(context.config)
            run = LoopRun(context, DeviceState())
            trials = partial(self.programs.group_trials, devices, ModeKeys.PREDICT)
            with inference_loop(context, run, self.input_fn, self.hooks, trials, cleanup) as loop:
                first: Batch | None = loop.batches.first()
                if first is not None:
                    with devices.placement.context():
                        snapshot = self.states.get(context, first, self.checkpoint_path)
                    yield from self._predict(run, loop, snapshot, first)

    def _predict(self, run: LoopRun, loop: InferenceLoop, snapshot: TrainState, first: Batch) -> Iterator[Any]:
        """Yields the predictions of each batch, or of each example, on the host."""
        _, batches, calls, schedule = loop
        placement = self.context.devices.placement
        step = self.programs.predict_step(self.context.devices)
        run.live = DeviceState(state=snapshot, step=int(np.asarray(snapshot.clock)[0]))

        def compute(dispatch: Dispatch) -> Any:
            program = step if dispatch.steps == 1 else step.several
            with placement.context():
                return program(snapshot, dispatch.features, dispatch.weights)

        ready = compute(one_batch(first))
        names = list(ready) if isinstance(ready, Mapping) else ["predictions"]
        program = Predictions(
            compute,
            lambda dispatch: step.has_effects(snapshot, dispatch.features, dispatch.weights),
            first=ready,
            keys=check_predict_keys(self.predict_keys, ready),
        )
        calls.add(step.hooks)
        calls.begin()
        run.output_kinds = dict.fromkeys(names, "tensor")
        run.output_names = frozenset(names)
        run.step = 0
        run.batch, run.batch_size = first, first.size
        schedule.start()
        check_fetches(run.seal_fetches(), names)
        schedule.agree()

        def fetched(dispatch: Dispatch, predictions: object) -> Iterator[Any]:
            weights = placement.whole(dispatch.weights)  # includes the rows of other processes
            dispatch = dispatch._replace(weights=weights)
            return on_host(dispatch, predictions, step.prediction_transforms, single=self.single)

        return predict_loop(run, batches, program, schedule, fetched)
