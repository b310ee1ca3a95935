"""One `Estimator.export_saved_model` call: signatures from model_fn, handed to a format."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError, ExportError
from estimator_core.export import ExportFormat, ExportRequest, Feature, ServingInputReceiver, SignatureSpec
from estimator_core.export.directories import new_export
from estimator_core.export.signatures import signature_methods, signature_outputs
from estimator_core.loop.engine import Engine
from estimator_core.loop.run_record import versions
from estimator_core.modes import ModeKeys
from estimator_core.step import TrainState, serving_fn

_log = logging.getLogger("estimator_core")
_ORDER = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
_EXAMPLE_BATCH = 2


def export_all(
    *,
    estimator: Any,
    engine: Engine,
    export_dir_base: str,
    receivers: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, str] | None,
    state: Callable[[str, Any], TrainState],
    checkpoint_path: str | None,
    format_name: str,
    plugins: Any,
) -> str:
    """Writes an export and returns its path.

    Raises:
        ArgumentError, ArgumentTypeError, ExportError: what cannot be exported, or a format that failed; nothing is left behind.
    """
    received = {mode: _receiver(mode, receivers[mode]) for mode in _ORDER if mode in receivers}
    if not received or len(received) != len(receivers):
        raise ArgumentError(f"experimental_mode must be one of ModeKeys, given: {sorted(receivers)}.")
    assets = _assets(assets_extra)
    component = plugins.get("format", format_name)
    chosen: ExportFormat = component() if isinstance(component, type) else component
    current = state(ModeKeys.EVAL, None)
    signatures: dict[str, SignatureSpec] = {}
    outputs: tuple[Any, ...] = ()
    with engine.placement.context():
        for mode, receiver in received.items():
            found, transforms = _signatures(engine, mode, receiver, current)
            signatures.update(found)
            outputs = transforms if mode == ModeKeys.PREDICT else outputs
    serving = received.get(ModeKeys.PREDICT)
    request = ExportRequest(
        signatures=signatures,
        variables={name: np.array(value) for name, value in {**current.variables, **current.model_state}.items()},
        assets=assets,
        input_transforms=() if serving is None else tuple(serving.transforms),
        output_transforms=outputs,
        receiver={} if serving is None else serving.receiver_tensors,
        global_step=int(np.asarray(current.clock)[0]),
        provenance={"versions": versions(), "plugins": plugins.versions(), "checkpoint": checkpoint_path},
    )
    with new_export(export_dir_base) as (directory, final):
        chosen.write(request, directory)
    path = str(final[0])
    _log.info("Exported step %d as %s to %s", request.global_step, format_name, path)
    plugins.export_written(estimator, path, format_name)
    return path


def _receiver(mode: str, receiver_fn: Any) -> ServingInputReceiver:
    if receiver_fn is None:
        raise ArgumentError("An input_receiver_fn must be defined.")
    if not callable(receiver_fn):
        raise ArgumentTypeError(f"serving_input_receiver_fn must be a function without arguments, given: {receiver_fn!r}.")
    receiver = receiver_fn()
    if not isinstance(receiver, ServingInputReceiver):
        raise ArgumentTypeError(f"serving_input_receiver_fn for mode {mode!r} must return an ec.export.ServingInputReceiver, given: {type(receiver).__name__}.")
    return receiver


def _assets(assets_extra: Mapping[str, str] | None) -> dict[str, Path]:
    assets = {name: Path(path) for name, path in (assets_extra or {}).items()}
    for name, path in assets.items():
        if not path.is_file():
            raise ArgumentError(f"assets_extra: there is no file {path} (for {name!r}).")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ArgumentError(f"assets_extra: {name!r} must be a relative path inside the export.")
    return assets


def _signatures(engine: Engine, mode: str, receiver: ServingInputReceiver, state: TrainState) -> tuple[dict[str, SignatureSpec], tuple[Any, ...]]:
    serve = serving_fn(engine.model_fn, engine.specs, mode)
    names = frozenset(state.variables)
    clock = np.asarray(state.clock)
    bare = not isinstance(receiver.model_features, Mapping)
    static: dict[str, Any] = {}

    def split(inputs: Mapping[str, Any]) -> tuple[Any, Any]:
        features = {name: value for name, value in inputs.items() if not name.startswith("labels")} if mode != ModeKeys.PREDICT else dict(inputs)
        labels = None if mode == ModeKeys.PREDICT else inputs.get("labels", {name.removeprefix("labels/"): value for name, value in inputs.items() if name.startswith("labels/")} or None)
        return (next(iter(features.values())) if bare else features), labels

    def all_outputs(variables: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        trainable = {name: value for name, value in variables.items() if name in names}
        rest = {name: value for name, value in variables.items() if name not in names}
        spec = serve(trainable, rest, clock, *split(inputs))
        static.update(methods=signature_methods(spec), transforms=tuple(spec.prediction_transforms))
        return signature_outputs(spec)

    inputs = dict(receiver.features)
    shapes = jax.eval_shape(all_outputs, {**state.variables, **state.model_state}, {name: _abstract(feature) for name, feature in inputs.items()})
    specs: dict[str, SignatureSpec] = {}
    for name, outputs in shapes.items():
        specs[name] = SignatureSpec(
            name=name,
            method=static["methods"][name],
            inputs=inputs,
            outputs={key: Feature((None, *leaf.shape[1:]) if leaf.shape and leaf.shape[0] == _EXAMPLE_BATCH else leaf.shape, str(leaf.dtype)) for key, leaf in outputs.items()},
            function=lambda variables, inputs, name=name: all_outputs(variables, inputs)[name],
        )
    return specs, static["transforms"]


def _abstract(feature: Feature) -> jax.ShapeDtypeStruct:
    if feature.dtype == "string":
        raise ExportError("A feature of dtype 'string' cannot enter model_fn; give the receiver host transforms that turn it into numbers.")
    shape = tuple(_EXAMPLE_BATCH if size is None else size for size in feature.shape)
    return jax.ShapeDtypeStruct(shape, feature.dtype)
