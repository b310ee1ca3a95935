"""Runs a scenario (a list of calls on one model_dir) with the real tf.estimator and tells all that can be seen.

A scenario is data, so that another framework can run the same one: see README.md for its words.
"""

import glob
import os
import re
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from tf_recording import described, listen_to_log, plain
from tf_tracers import TracingExporter, TracingHook, TracingListener, known_hook

LOG_OF_INTEREST = (
    "loss = ",
    "Loss for final step",
    "Skipping training",
    "Training with estimator made no steps",
    "Saving dict",
    "Evaluation [",
    "Model diverged",
    "Could not find trained model",
    "global_step/sec",
)

#: With several threads a hook may read the global step before or after the same step has raised it.
ONE_THREAD = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)

_log = listen_to_log()
_saves = []
_save = tf.compat.v1.train.Saver.save


def _noted_save(self, sess, save_path, global_step=None, **kwargs):
    path = _save(self, sess, save_path, global_step=global_step, **kwargs)
    _saves.append(int(path.rsplit("-", 1)[1]))
    return path


tf.compat.v1.train.Saver.save = _noted_save


def rows(count, nan_row=None):
    """The data of all scenarios: two features and a label a row, by formula."""
    index = np.arange(count)
    x = np.stack([(index % 5) / 4 - 0.5, (index * 3 % 7) / 7], axis=1).astype(np.float32)
    y = (1.5 * x[:, :1] - 2 * x[:, 1:] + 0.25 + (index[:, None] % 3 - 1) / 10).astype(np.float32)
    if nan_row is not None:
        x[nan_row] = np.nan
    return x, y


def input_fn(spec, trace, name):
    def make():
        trace.append(f"{name}.input_fn")
        x, y = rows(spec.get("rows", 24), spec.get("nan_row"))
        dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
        return dataset.repeat(spec.get("epochs", 1)).batch(spec.get("batch_size", 4))

    return make


def model_fn(features, labels, mode, params):
    """A linear model with fixed initial weights, mean squared error and plain gradient descent."""
    params["model_fn_calls"].append(str(mode))
    w = tf.compat.v1.get_variable("w", initializer=np.array([[0.5], [-0.25]], np.float32))
    b = tf.compat.v1.get_variable("b", initializer=np.array([0.125], np.float32))
    y = tf.matmul(features["x"], w) + b
    predictions = {"y": y, "double": 2 * y}
    if mode == tf.estimator.ModeKeys.PREDICT:
        if params.get("bare_predictions"):
            predictions = y
        hooks = [params["hook"](hook) for hook in params.get("prediction_hooks", ())]
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, prediction_hooks=hooks)
    loss = tf.reduce_mean(tf.square(y - labels), name="batch_loss")
    step = tf.compat.v1.train.get_global_step()
    if params.get("summary"):
        tf.compat.v1.summary.scalar("output_mean", tf.reduce_mean(y))
    train_op = tf.compat.v1.train.GradientDescentOptimizer(params.get("learning_rate", 0.1)).minimize(loss, step)
    metrics = {
        "mae": tf.compat.v1.metrics.mean_absolute_error(labels, y),
        "label_mean": tf.compat.v1.metrics.mean(labels),
    }
    return tf.estimator.EstimatorSpec(
        mode,
        predictions=predictions,
        loss=loss,
        train_op=train_op,
        eval_metric_ops=None if params.get("no_metrics") else metrics,
        training_hooks=[params["hook"](hook) for hook in params.get("training_hooks", ())],
        training_chief_hooks=[params["hook"](hook) for hook in params.get("training_chief_hooks", ())],
        evaluation_hooks=[params["hook"](hook) for hook in params.get("evaluation_hooks", ())],
    )


class _NoCopyDict(dict):
    """params that Estimator's deep copy leaves alone, so that model_fn may note its calls."""

    def __deepcopy__(self, memo):
        return self


def run(scenario):
    """Runs the calls of one scenario in a fresh model_dir and returns what could be seen after each."""
    model_dir = tempfile.mkdtemp(prefix="scenario_")
    try:
        results = [_call(scenario, call, model_dir) for call in scenario["calls"]]
        return {**scenario, "results": results, "events": _events(model_dir), "weights": _weights(model_dir)}
    finally:
        shutil.rmtree(model_dir)


def _call(scenario, call, model_dir):
    trace, calls, returned, error = [], [], None, None
    _saves.clear()
    _log.lines.clear()

    def hook(spec):
        return TracingHook(spec, trace) if "name" in spec else known_hook(spec, trace, model_dir)

    params = _NoCopyDict(scenario.get("params", {}), hook=hook, model_fn_calls=calls)
    params.update(call.get("params", {}))
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=1, session_config=ONE_THREAD)
    config = config.replace(**{**scenario.get("config", {}), **call.get("config", {})})
    estimator = tf.estimator.Estimator(model_fn, config=config, params=params)
    listeners = [TracingListener(spec, trace) for spec in call.get("listeners", ())]
    hooks = [hook(spec) for spec in call.get("hooks", ())]
    source = input_fn(call.get("input", {"epochs": None}), trace, call["call"])
    try:
        if call["call"] == "train":
            limits = {key: call[key] for key in ("steps", "max_steps") if key in call}
            result = estimator.train(source, hooks=hooks, saving_listeners=listeners, **limits)
            returned = "estimator" if result is estimator else repr(result)
        elif call["call"] == "evaluate":
            options = {key: call[key] for key in ("steps", "name") if key in call}
            if "checkpoint_step" in call:
                options["checkpoint_path"] = os.path.join(model_dir, f"model.ckpt-{call['checkpoint_step']}")
            returned = estimator.evaluate(source, hooks=hooks, **options)
        elif call["call"] == "predict":
            options = {key: call[key] for key in ("predict_keys", "yield_single_examples") if key in call}
            returned = []
            for item in estimator.predict(source, hooks=hooks, **options):
                trace.append("yielded")
                returned.append(item)
        else:
            returned = _train_and_evaluate(estimator, call, source, hooks, listeners, hook, trace)
    except Exception as raised:
        error = described(raised)
    steps, latest = _checkpoints(model_dir)
    return {
        "returned": plain(returned),
        "error": error,
        "trace": trace,
        "saves": list(_saves),
        "checkpoints": steps,
        "latest_checkpoint": latest,
        "model_fn_calls": calls,
        "files": sorted({re.sub(r"model\.ckpt.*|events\.out.*", "*", name) for name in os.listdir(model_dir)} - {"*"}),
        "log": [line for line in _log.lines if any(words in line for words in LOG_OF_INTEREST)],
    }


def _train_and_evaluate(estimator, call, source, hooks, listeners, hook, trace):
    exporters = [TracingExporter(spec, trace) for spec in call.get("exporters", ())]
    options = {key: call[key] for key in ("steps", "start_delay_secs", "throttle_secs") if key in call}
    if "eval_name" in call:
        options["name"] = call["eval_name"]
    return tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(source, max_steps=call.get("max_steps"), hooks=hooks, saving_listeners=listeners),
        tf.estimator.EvalSpec(
            input_fn(call.get("eval_input", {}), trace, "evaluate"),
            hooks=[hook(spec) for spec in call.get("eval_hooks", ())],
            exporters=exporters or None,
            **options,
        ),
    )


def _checkpoints(model_dir):
    latest = tf.train.latest_checkpoint(model_dir)
    indexes = glob.glob(os.path.join(model_dir, "model.ckpt-*.index"))
    steps = sorted(int(re.search(r"-(\d+)\.index", path)[1]) for path in indexes)
    return steps, latest and int(latest.rsplit("-", 1)[1])


def _weights(model_dir):
    latest = tf.train.latest_checkpoint(model_dir)
    if latest is None:
        return None
    reader = tf.train.load_checkpoint(latest)
    return {name: reader.get_tensor(name) for name in ("w", "b", "global_step")}


def _events(model_dir):
    """``{folder: [[step, tag, value]]}`` in the order of writing; rates are None."""
    tf.compat.v1.summary.FileWriterCache.clear()  # a call that raised has left its writer open
    found = {}
    for path in sorted(glob.glob(os.path.join(model_dir, "**", "events.out.tfevents.*"), recursive=True)):
        folder = os.path.relpath(os.path.dirname(path), model_dir)
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    number = None if value.tag.endswith("/sec") else np.float32(value.simple_value)
                else:
                    number = value.WhichOneof("value")
                found.setdefault(folder, []).append([event.step, value.tag, number])
    return found
