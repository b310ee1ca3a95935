"""Runs a recorded scenario with this framework, and reports what tf_scenario.py reports of tf.estimator's run."""

import json
import math
import re
import shutil
from pathlib import Path
from unittest import mock

import jax.numpy as jnp
import numpy as np
import optax
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

import estimator_core as ec
from estimator_core._checkpoint import CheckpointStore
from tests.parity.core_tracers import TracingExporter, TracingHook, TracingListener, known_hook


def rows(count, nan_row=None):
    """Returns the data of all scenarios, by the formula of tf_scenario.py."""
    index = np.arange(count)
    x = np.stack([(index % 5) / 4 - 0.5, (index * 3 % 7) / 7], axis=1).astype(np.float32)
    y = (1.5 * x[:, :1] - 2 * x[:, 1:] + 0.25 + (index[:, None] % 3 - 1) / 10).astype(np.float32)
    if nan_row is not None:
        x[nan_row] = np.nan
    return x, y


def batches_of(spec):
    """Returns the batches that an input spec describes, in order. The end of an epoch may be inside a batch."""
    x, y = rows(spec.get("rows", 24), spec.get("nan_row"))
    epochs, size = spec.get("epochs", 1), spec.get("batch_size", 4)
    end = math.inf if epochs is None else epochs * len(x)
    position = 0
    while position < end and len(x):
        index = np.arange(position, min(position + size, end)).astype(int) % len(x)
        yield {"x": x[index]}, y[index]
        position += size


def input_fn(spec, trace, name):
    """Returns an input without a position. Each call starts it again, as tf.data does in tf.estimator."""

    def make():
        trace.append(f"{name}.input_fn")
        return batches_of(spec)

    return ec.inputs.from_iterable(make, replay=False)


def model(params, hook):
    """Returns the scenarios' linear model, with the spec hooks that ``params`` selects."""

    def model_fn(features, labels, mode):
        w = ec.get_variable("w", (2, 1), np.array([[0.5], [-0.25]], np.float32))
        b = ec.get_variable("b", (1,), np.array([0.125], np.float32))
        y = features["x"] @ w + b
        predictions = {"y": y, "double": 2 * y}
        if mode == ec.ModeKeys.PREDICT:
            hooks = [hook(spec) for spec in params.get("prediction_hooks", ())]
            return ec.EstimatorSpec(
                mode, predictions=y if params.get("bare_predictions") else predictions, prediction_hooks=hooks
            )
        if params.get("summary"):
            ec.summary.scalar("output_mean", jnp.mean(y))
        metrics = {"mae": ec.metrics.mean(jnp.abs(labels - y)), "label_mean": ec.metrics.mean(labels)}
        return ec.EstimatorSpec(
            mode,
            predictions=predictions,
            loss=jnp.mean(jnp.square(y - labels)),
            train_op=optax.sgd(0.1),
            eval_metric_ops=None if params.get("no_metrics") else metrics,
            training_hooks=[hook(spec) for spec in params.get("training_hooks", ())],
            training_chief_hooks=[hook(spec) for spec in params.get("training_chief_hooks", ())],
            evaluation_hooks=[hook(spec) for spec in params.get("evaluation_hooks", ())],
        )

    return model_fn


def run(scenario, folder, first_calls=None):
    """Runs the calls of one scenario in ``folder``, and returns the observations after each call.

    Many scenarios begin with the same training. ``first_calls`` stores its result and model_dir for the other
    scenarios.
    """
    folder = Path(folder)
    model_dir, first_calls = folder / "model", {} if first_calls is None else first_calls
    first, *others = scenario["calls"]
    key = json.dumps([scenario.get("config"), scenario.get("params"), first])
    if key in first_calls:
        result, kept = first_calls[key]
        shutil.copytree(kept, model_dir)
    else:
        result = _call(scenario, first, model_dir)
        if others and model_dir.exists():
            first_calls[key] = result, shutil.copytree(model_dir, folder / "after_first_call")
    results = [result, *(_call(scenario, call, model_dir) for call in others)]
    events = _events(model_dir)
    if any(
        call["call"] == "train_and_evaluate" for call in scenario["calls"]
    ):  # see live_evaluations_come_before_their_checkpoint
        events = {name: [event for event in found if event[1] != "checkpoint_path"] for name, found in events.items()}
    return {"results": results, "events": events, "weights": _weights(model_dir)}


def _call(scenario, call, model_dir):
    trace, saves, predicted, returned, error = [], [], [], None, None
    params = {**scenario.get("params", {}), **call.get("params", {})}

    def hook(spec):
        return TracingHook(spec, trace) if "name" in spec else known_hook(spec, trace)

    settings = {
        "tf_random_seed": 1,
        "default_hooks": False,
        "allow_untrained": True,
        **scenario.get("config", {}),
        **call.get("config", {}),
    }
    estimator = ec.Estimator(model(params, hook), config=ec.RunConfig(model_dir=str(model_dir), **settings))
    save = CheckpointStore.save

    def noted_save(store, step, *rest):
        saves.append(step)
        return save(store, step, *rest)

    with mock.patch.object(CheckpointStore, "save", noted_save):
        try:
            if call["call"] == "predict":
                returned = predicted  # values that were yielded before an error count
            returned = _do(estimator, call, hook, trace, model_dir, predicted)
        except Exception as raised:
            kinds = [kind.__name__ for kind in type(raised).__mro__]
            error = {"type": kinds[0], "message": str(raised), "kinds": kinds}
    steps = _checkpoints(model_dir)
    return {
        "returned": returned,
        "error": error,
        "trace": trace,
        "saves": saves,
        "checkpoints": steps,
        "latest_checkpoint": max(steps, default=None),
    }


def _do(estimator, call, hook, trace, model_dir, predicted):
    hooks = [hook(spec) for spec in call.get("hooks", ())]
    listeners = [TracingListener(spec, trace) for spec in call.get("listeners", ())]
    source = input_fn(call.get("input", {"epochs": None}), trace, call["call"])
    if call["call"] == "train":
        limits = {key: call[key] for key in ("steps", "max_steps") if key in call}
        result = estimator.train(source, hooks=hooks, saving_listeners=listeners, **limits)
        return "estimator" if result is estimator else repr(result)
    if call["call"] == "evaluate":
        options = {key: call[key] for key in ("steps", "name") if key in call}
        if "checkpoint_step" in call:
            options["checkpoint_path"] = str(model_dir / "checkpoints" / str(call["checkpoint_step"]))
        return estimator.evaluate(source, hooks=hooks, **options)
    if call["call"] == "predict":
        options = {key: call[key] for key in ("predict_keys", "yield_single_examples") if key in call}
        for item in estimator.predict(source, hooks=hooks, **options):
            trace.append("yielded")
            predicted.append(item)
        return predicted
    options = {key: call[key] for key in ("steps", "start_delay_secs", "throttle_secs") if key in call}
    if "eval_name" in call:
        options["name"] = call["eval_name"]
    return ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(source, max_steps=call.get("max_steps"), hooks=hooks, saving_listeners=listeners),
        ec.EvalSpec(
            input_fn(call.get("eval_input", {}), trace, "evaluate"),
            hooks=[hook(spec) for spec in call.get("eval_hooks", ())],
            exporters=[TracingExporter(spec, trace) for spec in call.get("exporters", ())],
            **options,
        ),
    )


def _checkpoints(model_dir):
    folder = model_dir / "checkpoints"
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.exists() else []


def _weights(model_dir):
    newest = ec.latest_checkpoint(str(model_dir))
    if newest is None:
        return None
    values = ec.load_variables(newest)
    return {"w": values["w"], "b": values["b"], "global_step": int(Path(newest).name)}


def _events(model_dir):
    """Returns ``{folder: [[step, tag, value]]}`` in the order of writing. Rates are None."""
    found = {}
    for path in sorted(model_dir.rglob("events.out.tfevents.*")):
        folder = str(path.parent.relative_to(model_dir))
        for event in LegacyEventFileLoader(str(path)).Load():
            for value in event.summary.value:
                number = value.simple_value if value.HasField("simple_value") else value.WhichOneof("value")
                tag = re.sub("/text_summary$", "", value.tag)
                found.setdefault(folder, []).append([event.step, tag, None if tag.endswith("/sec") else number])
    return found
