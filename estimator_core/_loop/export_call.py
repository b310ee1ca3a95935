"""One `Estimator.export_saved_model` call: signatures from model_fn, passed to a format."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint.catalog import manifest_digest
from estimator_core._checkpoint.layout import checkpoint_step
from estimator_core._export import (
    ExportCheck,
    ExportFormat,
    ExportRequest,
    Feature,
    FitsTraining,
    ServingInputReceiver,
    SupervisedInputReceiver,
)
from estimator_core._export.destination import destination
from estimator_core._export.pending import PendingExport
from estimator_core._export.raw import features_after, renaming
from estimator_core._export.request import check_request, write_export
from estimator_core._inputs.seen import seen_features
from estimator_core._inputs.transforms import LABELS
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState, is_readable
from estimator_core._loop.export_signatures import ModeSignatures, mode_signatures
from estimator_core._loop.inference import InferenceStates
from estimator_core._loop.programs import Programs
from estimator_core._loop.run_record import versions
from estimator_core._plugins.roles import component_of
from estimator_core._step import TrainState
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")
_ORDER = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)


def start_export(
    context: RunContext,
    *,
    programs: Programs,
    live: DeviceState,
    states: InferenceStates,
    export_dir_base: str,
    receivers: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, str] | None,
    checkpoint_path: str | None,
    format_name: str,
    host_transforms: Sequence[Any],
    label_transforms: Sequence[Any],
) -> PendingExport:
    """Starts an export: its contents are copied now, and written in a thread.

    Raises:
        ArgumentError, ArgumentTypeError, ExportError: something cannot be exported; nothing is left on disk. `wait` of
            the returned object raises ExportError if the format failed, or if its outputs are not the estimator's.
    """
    place = destination(export_dir_base, context.plugins)
    check: ExportCheck = component_of("export_check", context.config.components, context.plugins)
    source = checkpoint_path or context.estimator.latest_checkpoint()
    if not (context.training and live.state is not None and is_readable(live.ready)):
        context = context.within(devices=context.devices.alone())  # any process may export, and asks no other one
    request, chosen = export_request(
        context,
        programs=programs,
        state=lambda: _current(context, live, source) or states.get(context, None, checkpoint_path),
        values=np.array,
        receivers=receivers,
        seen=seen_features(Path(context.estimator.model_dir)),
        assets_extra=assets_extra,
        source=source,
        format_name=format_name,
        host_transforms=host_transforms,
        label_transforms=label_transforms,
    )

    def write() -> str:
        with context.devices.single().placement.context():
            path = place(lambda base: write_export(request, chosen, base, check))
        _log.info("Exported step %d as %s to %s", request.global_step, format_name, path)
        context.plugins.export_written(context.estimator, path, format_name)
        return path

    return PendingExport(write)


def export_request(
    context: RunContext,
    *,
    programs: Programs,
    state: Callable[[], TrainState],
    values: Callable[[Any], np.ndarray],
    receivers: Mapping[str, Callable[[], Any]],
    seen: Mapping[str, Mapping[str, Any]],
    assets_extra: Mapping[str, str] | None,
    source: str | None,
    format_name: str,
    host_transforms: Sequence[Any],
    label_transforms: Sequence[Any],
) -> tuple[ExportRequest, ExportFormat]:
    """What an export holds, checked by its format, and the format.

    Args:
        context: of the call.
        programs: of the Estimator.
        state: returns what is exported.
        values: makes a host array of a variable.
        receivers: by mode.
        seen: what training saw of features, as `seen_features` returns it.
        assets_extra: files to add.
        source: the checkpoint of the state.
        format_name: of the format.
        host_transforms: of the Estimator, for features.
        label_transforms: of the Estimator, for labels.

    Raises:
        ArgumentError, ArgumentTypeError, ExportError: something cannot be exported.
    """
    received = {mode: _receiver(mode, receivers[mode], seen) for mode in _ORDER if mode in receivers}
    if not received or len(received) != len(receivers):
        raise ArgumentError(f"experimental_mode must be one of ModeKeys, given: {sorted(receivers)}.")
    assets = _assets(assets_extra)
    chosen: ExportFormat = context.plugins.get("format", format_name)()
    current = state()
    modes: dict[str, ModeSignatures] = {}
    # What is exported runs on one device, whatever the mesh of the run.
    devices = context.devices.single()
    with devices.placement.context():
        for mode, receiver in received.items():
            features = features_after(host_transforms, receiver.features, _examples(receiver))
            labels = _labels(receiver, label_transforms)
            modes[mode] = mode_signatures(devices, programs, mode, receiver, features, labels, current)
    serving = received.get(ModeKeys.PREDICT)
    fixed = [found.fixed_batch_sizes for found in modes.values() if found.fixed_batch_sizes is not None]
    request = ExportRequest(
        signatures={name: spec for found in modes.values() for name, spec in found.signatures.items()},
        variables={name: values(value) for name, value in {**current.variables, **current.model_state}.items()},
        assets=assets,
        input_transforms=() if serving is None else (*_receiving(serving), *host_transforms),
        output_transforms=() if serving is None else modes[ModeKeys.PREDICT].prediction_transforms,
        receiver={} if serving is None else {str(name): feature for name, feature in serving.receiver_tensors.items()},
        fixed_batch_sizes=fixed[0] if fixed else None,
        global_step=int(np.asarray(current.clock)[0]),
        provenance={
            "versions": versions(),
            "plugins": context.plugins.versions(),
            "checkpoint": source,
            "checkpoint_sha256": None if source is None else manifest_digest(Path(source)),
            "training_saw": seen,
        },
    )
    with devices.placement.context():
        check_request(request, chosen)
    return request, chosen


def _current(context: RunContext, live: DeviceState, checkpoint_path: str | None) -> TrainState | None:
    """The state on the device if the requested checkpoint is its own, so that nothing need be read."""
    if context.devices.apart or live.state is None:
        return None  # spread over processes that take no part, or absent
    if checkpoint_path is None or checkpoint_path != context.estimator.latest_checkpoint():
        return None
    return live.state if live.step == live.checkpoint_step == checkpoint_step(checkpoint_path) else None


def _receiver(mode: str, receiver_fn: Any, seen: Mapping[str, Mapping[str, Any]]) -> ServingInputReceiver:
    if receiver_fn is None:
        raise ArgumentError("An input_receiver_fn must be defined.")
    if not callable(receiver_fn):
        raise ArgumentTypeError(
            f"serving_input_receiver_fn must be a function without arguments, given: {receiver_fn!r}."
        )
    receiver = receiver_fn()
    if not isinstance(receiver, ServingInputReceiver):
        raise ArgumentTypeError(
            f"serving_input_receiver_fn for mode {mode!r} must return an ec.export.ServingInputReceiver, given: "
            f"{type(receiver).__name__}."
        )
    if isinstance(receiver, FitsTraining):
        receiver = receiver.fitted({name: facts["places"] for name, facts in seen.items()})
    _warn_of_less(receiver, seen)
    return receiver


def _examples(receiver: ServingInputReceiver) -> Mapping[Any, Any]:
    return receiver.examples if isinstance(receiver, SupervisedInputReceiver) else {}


def _labels(receiver: ServingInputReceiver, transforms: Sequence[Any]) -> Mapping[Any, Feature]:
    """What model_fn gets as labels. For transforms, a bare array has the name "labels"."""
    if not isinstance(receiver, SupervisedInputReceiver) or not receiver.bare_labels:
        return features_after(transforms, receiver.labels, _examples(receiver)) if receiver.labels else {}
    ((name, feature),) = receiver.labels.items()
    examples = {LABELS: receiver.examples[name]} if name in receiver.examples else {}
    found = features_after(transforms, {LABELS: feature}, examples)
    return {name: found[LABELS]} if set(found) == {LABELS} else found


def _warn_of_less(receiver: ServingInputReceiver, seen: Mapping[str, Mapping[str, Any]]) -> None:
    """Warns about inputs that training took and the export refuses."""
    for name, feature in receiver.features.items():
        facts = seen.get(str(name))
        if facts is None:
            continue
        places = prod(size for size in feature.shape[1:] if size is not None)
        if places < facts["places"]:
            _log.warning(
                "The export takes %d value%s of the feature %r, and training saw examples with %d: requests like those "
                "will be refused. Give the receiver that many places.",
                places,
                "" if places == 1 else "s",
                name,
                facts["places"],
            )
        if (feature.dtype == "string") != (facts["dtype"] == "string"):
            _log.warning(
                "The export takes the feature %r as %s, and training saw %s.", name, feature.dtype, facts["dtype"]
            )


def _assets(assets_extra: Mapping[str, str] | None) -> dict[str, Path]:
    assets = {name: Path(path) for name, path in (assets_extra or {}).items()}
    for name, path in assets.items():
        if not path.is_file():
            raise ArgumentError(f"assets_extra: there is no file {path} (for {name!r}).")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ArgumentError(f"assets_extra: {name!r} must be a relative path inside the export.")
    return assets


def _receiving(serving: ServingInputReceiver) -> Sequence[Any]:
    """The transforms from what a client sends to the features: the receiver's own, or new names."""
    return serving.transforms or renaming(serving.receiver_tensors, serving.features)
