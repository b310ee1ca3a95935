"""Tries a run without values: opens inputs, traces model_fn, checks exports. It does not compile, compute or write
anything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._inputs.contract import Batch
from estimator_core._inputs.preparation import Preparation
from estimator_core._inputs.seen_features import SeenFeatures
from estimator_core._inputs.source import BatchSource
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.export_call import ExportCall
from estimator_core._loop.programs import Programs
from estimator_core._loop.run import LoopRun
from estimator_core._step import BoundModelFn, TrainState, discover
from estimator_core._types import PyTree
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys


def opened(context: RunContext, input_fn: Callable[..., Any], hooks: Sequence[Any], mode: str) -> BatchSource:
    """Opens an input at its beginning, like a call of this mode.

    Args:
        context: the context of a call, of which neither the mode nor the directory matters.
        input_fn: the input, with the transforms of the estimator.
        hooks: the hooks. Only `begin` of each is called, which prepares inputs and changes batches.
        mode: one of `ModeKeys`.
    """
    run = LoopRun(replace(context, mode=mode, directory=Path(context.estimator.model_dir)), DeviceState())
    source = run.open(input_fn)
    with contextlib.ExitStack() as failed:
        failed.callback(source.close)
        for hook in hooks:
            hook.begin(run)
        failed.pop_all()
    return source


def first_batch(context: RunContext, input_fn: Callable[..., Any], hooks: Sequence[Any]) -> Batch | None:
    """Returns the first batch that `train(input_fn, hooks)` would draw; None: the input is empty."""
    with contextlib.closing(opened(context, input_fn, hooks, ModeKeys.TRAIN)) as source:
        return next(source, None)


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Tries the inputs, the model and the exports of an Estimator with shapes only.

    The results stay here. The Estimator itself traces later as if there had been no rehearsal.

    Args:
        context: the context of a call that does not train.
        bound: the model_fn.
        preparation: the preparation of batches.
        programs: the programs with the variables found so far.
        seeing: the features seen in the training input, for receivers that are fitted to them.
    """

    context: RunContext
    bound: BoundModelFn
    preparation: Preparation
    programs: Programs
    seeing: SeenFeatures = field(default_factory=SeenFeatures)

    def open(self, input_fn: Callable[..., object], mode: str, hooks: Sequence[Hook] = ()) -> BatchSource:
        """Returns the batches of an input, as a call of this mode draws them. Call `close` on the result.

        Args:
            input_fn: the function that returns batches.
            mode: one of `ModeKeys`.
            hooks: the hooks whose `begin` the input needs.
        """
        before = (self.seeing,) if mode == ModeKeys.TRAIN else ()
        around = self.preparation.around(input_fn, self.context.estimator.model_dir, *before)
        return opened(self.context, around, hooks, mode)

    def trace(self, mode: str, batch: Batch) -> PyTree:
        """Traces model_fn with the shapes of a batch, and the optimizer in mode TRAIN.

        Returns:
            The shapes and dtypes of the predictions; None if the mode has no predictions.

        Raises:
            ModelFnError, VariableError: model_fn breaks its contract, or declares a variable differently than before.
        """
        labels = None if mode == ModeKeys.PREDICT else batch.labels
        specs, placement = self.programs.specs, self.context.devices.placement
        with placement.context():
            found = discover(self.bound, mode, (batch.features, labels, batch.weights), known=specs)
        specs.update(found.specs)
        return found.predictions

    def check_export(
        self,
        serving_input_receiver_fn: Callable[[], object],
        assets_extra: Mapping[str, str] | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
        *,
        format: str = "stablehlo",
    ) -> None:
        """Makes the export request of `Estimator.export_saved_model`, and lets the format check it.

        Raises:
            ArgumentError, ArgumentTypeError, ExportError: the export cannot be made.
        """
        specs = self.programs.specs.values()
        empty = {spec.name: np.broadcast_to(np.zeros((), spec.dtype), spec.shape) for spec in specs}
        trained = {spec.name: empty[spec.name] for spec in specs if spec.trainable}
        rest = {name: value for name, value in empty.items() if name not in trained}
        model_dir = self.context.estimator.model_dir
        call = ExportCall(
            context=self.context,
            programs=self.programs,
            receivers={experimental_mode: serving_input_receiver_fn},
            assets_extra=assets_extra,
            format_name=format,
            host_transforms=self.preparation.exported(model_dir),
            label_transforms=self.preparation.exported_labels(model_dir),
        )
        state, seen = TrainState(np.zeros(4, np.uint32), trained, rest, ()), self.seeing.with_earlier(Path(model_dir))
        call.request(state=lambda: state, values=lambda value: value, seen=seen, source=None)
