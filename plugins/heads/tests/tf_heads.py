"""Runs a head case, given as data, with the real tf.estimator; what the recorders here share.

Runs in an environment that has ``tensorflow-cpu==2.15.1`` and nothing of this project. The words of a case are
explained in ``recorded/README.md``.
"""

import hashlib
import json
import os
import pathlib
import platform
import re
import sys
from importlib import metadata

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator.head.sequential_head import SequentialHeadWrapper

SEED = 20150415
FOLDER = pathlib.Path(__file__).resolve().parent
TRAIN, EVAL, PREDICT = tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT


def absolute(labels, logits):
    return tf.abs(tf.cast(labels, tf.float32) - logits)


def mean_absolute(labels, logits):
    return tf.reduce_mean(absolute(labels, logits), axis=-1, keepdims=True)


def label_times_mean_logit(labels, logits):
    return tf.cast(labels, tf.float32) * tf.reduce_mean(logits, axis=-1, keepdims=True)


def scaled_absolute(labels, logits, features):
    return features["scale"] * absolute(labels, logits)


FUNCTIONS = {
    "absolute": absolute,
    "mean_absolute": mean_absolute,
    "label_times_mean_logit": label_times_mean_logit,
    "scaled_absolute": scaled_absolute,
    "times_10": lambda value: 10 * value,
    "exp": tf.exp,
}


def build(spec):
    """Makes the head that ``{"class", "arguments"}`` describes."""
    arguments = dict(spec["arguments"])
    for name in ("loss_fn", "inverse_link_fn"):
        if isinstance(arguments.get(name), str):
            arguments[name] = FUNCTIONS[arguments[name]]
    if arguments.get("loss_reduction") in ("sum", "sum_over_batch_size", "none"):
        arguments["loss_reduction"] = getattr(tf.losses.Reduction, arguments["loss_reduction"].upper())
    if spec["class"] == "MultiHead":
        arguments["heads"] = [build(head) for head in arguments["heads"]]
        return tf.estimator.MultiHead(**arguments)
    if spec["class"] == "SequentialHeadWrapper":
        arguments["static_head"] = build(arguments["static_head"])
        return SequentialHeadWrapper(**arguments)
    return getattr(tf.estimator, spec["class"])(**arguments)


def tensors(value):
    """JSON arrays as tensors: integers int64, numbers float32, text string, ``sparse`` as SparseTensor."""
    if isinstance(value, dict):
        if "sparse_indices" in value:
            indices = np.array(value["sparse_indices"], np.int64).reshape(-1, len(value["dense_shape"]))
            return tf.sparse.SparseTensor(indices, _array(value["values"]), value["dense_shape"])
        return {key: tensors(item) for key, item in value.items()}
    return tf.constant(_array(value))


def _array(value):
    array = np.array(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def observe(case):
    """All outputs of the head for the case's batches: losses, metrics after each batch, predictions, exports."""
    head = build(case["head"])
    regularization = case.get("regularization_losses")
    losses = None if regularization is None else [tf.constant(loss) for loss in regularization]
    metrics = head.metrics(regularization_losses=losses)
    # the sequence wrapper's own method passes `keys`, which not every head it may wrap accepts
    predict = getattr(head, "_static_head", head).predictions
    expected = {"loss_train": [], "loss_eval": [], "metrics": [], "predictions": []}
    for batch in case["batches"]:
        given = {key: tensors(batch[key]) for key in ("labels", "logits", "features")}
        for mode, key in ((TRAIN, "loss_train"), (EVAL, "loss_eval")):
            expected[key].append(head.loss(**given, mode=mode, regularization_losses=losses).numpy())
        metrics = head.update_metrics(metrics, regularization_losses=losses, **given)
        expected["metrics"].append({key: metric.result().numpy() for key, metric in metrics.items()})
        expected["predictions"].append({key: value.numpy() for key, value in predict(given["logits"]).items()})
    expected.update(_specs(case))
    first = plain(expected["predictions"][0])
    expected["spec_predictions"] = _named(expected["spec_predictions"], first)
    return {**case, "expected": expected}


def _specs(case):
    """What create_estimator_spec gives for the first batch in each mode, in a graph as an Estimator builds it."""
    found = {}
    for mode in (TRAIN, EVAL, PREDICT):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            head, batch = build(case["head"]), case["batches"][0]
            options = {"features": tensors(batch["features"]), "mode": mode, "logits": tensors(batch["logits"])}
            if mode != PREDICT:
                options["labels"] = tensors(batch["labels"])
                if case.get("regularization_losses") is not None:
                    options["regularization_losses"] = [tf.constant(loss) for loss in case["regularization_losses"]]
            if mode == TRAIN:
                options["train_op_fn"] = lambda loss: tf.no_op()
            spec = head.create_estimator_spec(**options)
            session.run(tf.compat.v1.tables_initializer())
            if mode == PREDICT:
                predictions = plain(session.run(spec.predictions))
                found["spec_predictions"] = predictions
                found["export_outputs"] = {
                    name: {"type": type(output).__name__, **_named(session.run(_export_tensors(output)), predictions)}
                    for name, output in spec.export_outputs.items()
                }
            else:
                found[f"spec_loss_{mode}"] = session.run(spec.loss)
            if mode == TRAIN:
                summary = tf.compat.v1.Summary.FromString(session.run(tf.compat.v1.summary.merge_all()))
                found["summaries"] = {value.tag: np.float32(value.simple_value) for value in summary.value}
            if mode == EVAL:
                found["spec_metric_keys"] = list(spec.eval_metric_ops)
    return found


def _named(outputs, predictions):
    """Export outputs as JSON; an array that equals the prediction ``key`` is written ``"=key"``."""
    if isinstance(outputs, dict):
        return {name: _named(value, predictions) for name, value in plain(outputs).items()}
    return next((f"={key}" for key, value in predictions.items() if value == outputs), outputs)


def _export_tensors(output):
    if isinstance(output, tf.estimator.export.ClassificationOutput):
        given = {"scores": output.scores, "classes": output.classes}
        return {key: value for key, value in given.items() if value is not None}
    if isinstance(output, tf.estimator.export.RegressionOutput):
        return {"value": output.value}
    return {"outputs": output.outputs}


def error_of(function):
    """Calls ``function`` and returns ``{"type", "message"}`` of what it raises, or None."""
    try:
        function()
    except Exception as error:
        message = re.sub(r"0x[0-9a-f]{6,}", "0x0", str(error)).split("\n")[0]  # what follows is a graph's traceback
        return {"type": type(error).__name__, "message": message}
    return None


def plain(value):
    """A JSON form of any result; floats keep the shortest digits that name their float32 value."""
    if isinstance(value, dict):
        return {"/".join(key) if isinstance(key, tuple) else str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray) and value.ndim:
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(float(str(value))) if value.dtype == np.float32 else plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    return value


def write(script, cases):
    """Writes ``recorded/<name>.json`` for ``record_<name>.py``; RECORDED_FOLDER redirects it."""
    script = pathlib.Path(script).resolve()
    header = {
        "script": script.name,
        "sources_sha256": {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (script, FOLDER / "tf_heads.py")
        },
        "seed": SEED,
        "versions": {
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "tensorflow_estimator": metadata.version("tensorflow-estimator"),
            "numpy": np.__version__,
        },
    }
    target = pathlib.Path(os.environ.get("RECORDED_FOLDER") or FOLDER / "recorded")
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{script.stem.removeprefix('record_')}.json"
    lines = [f"{json.dumps(name)}: {json.dumps(plain(case), separators=(',', ':'))}" for name, case in cases.items()]
    body = ",\n".join(lines)
    path.write_text(f'{{"header": {json.dumps(header)},\n"cases": {{\n{body}\n}}}}\n')
    print(f"{path}: {len(cases)} cases, {path.stat().st_size / 1024:.0f} KiB", file=sys.stderr)
