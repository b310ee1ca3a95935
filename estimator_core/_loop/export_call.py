"""One `Estimator.export_saved_model` call: creates signatures from model_fn and passes them to a format."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._backends import Devices
from estimator_core._checkpoint.catalog import manifest_digest
from estimator_core._export.contract import ExportCheck, ExportFormat, ExportRequest
from estimator_core._export.directories import destination
from estimator_core._export.model import ModelToExport
from estimator_core._export.pending import PendingExport
from estimator_core._inputs.seen_features import seen_features
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState, is_readable
from estimator_core._loop.inference_state import InferenceStates
from estimator_core._loop.programs import Programs
from estimator_core._loop.run_record import versions
from estimator_core._moved import SIGNATURES
from estimator_core._plugins.in_use import component_of, package_of
from estimator_core._step import TrainState
from estimator_core._step.predict_step import apply_model
from estimator_core._step.state import STEP
from estimator_core._types import Arrays, PyTree
from estimator_core.specs import EstimatorSpec

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class ExportCall:
    """The arguments of an export, and the parts of the Estimator that it uses.

    Attributes:
        context: the context of the call.
        programs: the programs of the Estimator.
        receivers: the functions that return the receivers, by mode.
        assets_extra: the files to add, from the name in the export to the path.
        format_name: the name of the format.
        host_transforms: the transforms of the Estimator for features.
        label_transforms: the transforms of the Estimator for labels.
    """

    context: RunContext
    programs: Programs
    receivers: Mapping[str, Callable[[], Any]]
    assets_extra: Mapping[str, str] | None
    format_name: str
    host_transforms: Sequence[Any]
    label_transforms: Sequence[Any]

    def start(
        self, export_dir_base: str, live: DeviceState, states: InferenceStates, checkpoint_path: str | None
    ) -> PendingExport:
        """Starts an export. Its contents are copied now, and written in a thread.

        Args:
            export_dir_base: the parent directory of the exports.
            live: the state in memory.
            states: the provider of the state to export if it is not in memory.
            checkpoint_path: the checkpoint to export instead of the newest state.

        Raises:
            ArgumentError, ArgumentTypeError, ExportError: something cannot be exported. Nothing is left on disk.
                `wait` of the returned object raises ExportError if the format failed, or if its outputs differ from
                those of the estimator.
        """
        context = self.context
        place = destination(export_dir_base, context.plugins)
        check: ExportCheck = component_of("export_check", context.config.components, context.plugins)
        source = checkpoint_path or context.estimator.latest_checkpoint()
        if not (context.training and live.state is not None and is_readable(live.ready)):
            context = context.within(devices=context.devices.alone())  # any process may export, and asks no other one
        request, chosen = replace(self, context=context).request(
            state=lambda: _current(context, live, source) or states.get(context, None, checkpoint_path),
            values=np.array,
            seen=seen_features(Path(context.estimator.model_dir)),
            source=source,
        )
        signatures = package_of(context.plugins, *SIGNATURES, "An export")

        def write() -> str:
            with context.devices.single().placement.context():
                path = place(lambda base: signatures.write_export(request, chosen, base, check))
            _log.info("Exported step %d as %s to %s", request.global_step, self.format_name, path)
            context.plugins.export_written(context.estimator, path, self.format_name)
            return path

        return PendingExport(write)

    def request(
        self,
        *,
        state: Callable[[], TrainState],
        values: Callable[[Any], np.ndarray],
        seen: Mapping[str, Mapping[str, Any]],
        source: str | None,
    ) -> tuple[ExportRequest, ExportFormat]:
        """Returns the contents of an export, checked by its format, and the format.

        Args:
            state: a function that returns the state to export.
            values: a function that copies a variable to a host array.
            seen: the record of features seen in training, from `seen_features`.
            source: the checkpoint of the state.

        Raises:
            ArgumentError, ArgumentTypeError, ExportError: something cannot be exported.
        """
        context = self.context
        chosen: ExportFormat = context.plugins.make("format", self.format_name)
        request: ExportRequest = package_of(context.plugins, *SIGNATURES, "An export").make_request(
            lambda: _model(context.devices.single(), self.programs, state(), values),
            chosen,
            receivers=self.receivers,
            seen=seen,
            assets_extra=self.assets_extra,
            provenance={
                "versions": versions(),
                "plugins": context.plugins.versions(),
                "checkpoint": source,
                "checkpoint_sha256": None if source is None else manifest_digest(Path(source)),
                "training_saw": seen,
            },
            host_transforms=self.host_transforms,
            label_transforms=self.label_transforms,
        )
        return request, chosen


def _model(
    devices: Devices, programs: Programs, state: TrainState, values: Callable[[Any], np.ndarray]
) -> ModelToExport:
    """Returns the model in the form from which exports are made.

    An export runs on one device, whatever the mesh of the run.
    """
    model_fn, specs = programs.model_fn(devices), programs.specs
    clock = np.array(state.clock)
    step, clock[STEP] = int(clock[STEP]), 0  # so that the program is the same at every step

    def serve(mode: str) -> Callable[..., EstimatorSpec]:
        def of_mode(trained: Arrays, rest: Arrays, features: PyTree, labels: PyTree) -> EstimatorSpec:
            return apply_model(model_fn, specs, TrainState(clock, trained, rest, ()), features, labels, mode)

        return of_mode

    return ModelToExport(
        owner=programs,
        placement=devices.placement,
        on_device=devices.placement.context,
        variables=state.variables,
        model_state=state.model_state,
        step=step,
        serve=serve,
        values=values,
    )


def _current(context: RunContext, live: DeviceState, checkpoint_path: str | None) -> TrainState | None:
    """Returns the state on the device if the requested checkpoint contains it, so that nothing must be read."""
    if context.devices.apart or live.trained_elsewhere or live.state is None:
        return None  # distributed over processes that do not take part, donated to steps, or absent
    if checkpoint_path is None or checkpoint_path != context.estimator.latest_checkpoint():
        return None
    return live.state if live.step == live.checkpoint_step and live.is_in(checkpoint_path) else None
