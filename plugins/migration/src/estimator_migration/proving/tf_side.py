"""Runs a program of tf.estimator for a proof, and records the quantities that it computes.

This file runs alone, in the interpreter of the old program: Python 3.7 and TensorFlow 1.15, or later ones.

    PYTHON tf_side.py PROGRAM FUNCTION FOLDER STEPS EVAL_BATCHES

The intermediate results of an Estimator are not public in TensorFlow, so private members are used. `zip` is that of
Python 3.7.
"""
# ruff: noqa: B905, SLF001

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
import tempfile
from typing import Any, cast

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf: Any = importlib.import_module("tensorflow")
v1: Any = tf.compat.v1
nest: Any = tf.nest
TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class Arrays:
    """Stores arrays in a separate file under numbers, so that JSON holds the rest."""

    def __init__(self) -> None:
        self.kept: dict[str, np.ndarray] = {}

    def tree(self, value: Any) -> Any:
        """Returns a form of dicts, tuples, None and arrays that JSON can hold."""
        if value is None:
            return None
        if isinstance(value, dict):
            return {"dict": [[str(key), self.tree(value[key])] for key in value]}
        if isinstance(value, (list, tuple)) and not hasattr(value, "dense_shape"):
            return {"tuple": [self.tree(each) for each in value]}
        name = f"a{len(self.kept)}"
        self.kept[name] = _bytes_of_fixed_length(_dense(value))
        return {"array": name}


def _dense(value: Any) -> np.ndarray:
    """Returns a value as an array. A sparse one is filled up like the inputs of estimator-core: -1, b"" or 0."""
    if not hasattr(value, "dense_shape"):
        return np.asarray(value)
    values = np.asarray(value.values)
    fill = b"" if values.dtype.kind in "OS" else -1 if values.dtype.kind in "iu" else 0
    found = np.full(tuple(value.dense_shape), fill, dtype=object if values.dtype.kind in "OS" else values.dtype)
    found[tuple(np.asarray(value.indices).T)] = values
    return found


def _bytes_of_fixed_length(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "O":
        return array
    flat = [each if isinstance(each, bytes) else str(each).encode() for each in array.ravel()]
    return np.array(flat or [b""], dtype="S")[: len(flat)].reshape(array.shape)


class Feed:
    """The batches of an input_fn, and an input_fn that returns the fed batches."""

    def __init__(self, estimator: Any, input_fn: Any, mode: str, count: int, hooks: Any) -> None:
        self.batches: list[Any] = []
        with v1.Graph().as_default(), _with_mode(estimator, mode):
            v1.set_random_seed(estimator.config.tf_random_seed)
            features, labels, own = estimator._get_features_and_labels_from_input_fn(input_fn, mode)
            structure = {"features": features} if labels is None else {"features": features, "labels": labels}
            self._shapes = nest.map_structure(_shape_of, structure)
            with v1.train.MonitoredSession(hooks=[*own, *hooks]) as session:
                while not session.should_stop() and len(self.batches) < count:
                    self.batches.append(session.run(structure))
        if not self.batches:
            raise SystemExit(f"The input of mode {mode!r} is empty.")
        self._places: list[Any] = []

    def input_fn(self, params: Any = None) -> Any:
        """Returns features and labels that can be fed. Without a feed they are the first batch, for other hooks."""
        first = nest.flatten(self.batches[0], expand_composites=True)
        shapes = nest.flatten(self._shapes)
        values = [value for _, value in zip(_spread(shapes), first)]
        self._places = [
            v1.placeholder_with_default(tf.constant(value, dtype=dtype), shape)
            for (dtype, shape), value in zip(_spread(shapes), values)
        ]
        left = iter(self._places)
        built = [_joined(shape, left) for shape in shapes]
        packed = nest.pack_sequence_as(self._shapes, built)
        return packed["features"], packed.get("labels")

    def features_fn(self, params: Any = None) -> Any:
        """Returns the fed features, without labels."""
        return self.input_fn()[0]

    def feed(self, batch: Any) -> Any:
        """Returns a feed_dict for a batch."""
        return dict(zip(self._places, nest.flatten(batch, expand_composites=True)))


class _Shape:
    """The known properties of a tensor before it has values. It is a leaf of structures."""

    def __init__(self, dtype: Any, shape: Any, sparse: bool) -> None:
        self.dtype, self.shape, self.sparse = dtype, shape, sparse


def _shape_of(tensor: Any) -> _Shape:
    if not isinstance(tensor, (tf.Tensor, tf.SparseTensor)):
        raise SystemExit(f"The input holds {type(tensor).__name__!r}: only dense and sparse tensors can be compared.")
    return _Shape(tensor.dtype, tensor.shape, isinstance(tensor, tf.SparseTensor))


def _spread(shapes: Any) -> Any:
    for each in shapes:
        if each.sparse:
            yield from ((tf.int64, [None, len(each.shape)]), (each.dtype, [None]), (tf.int64, [len(each.shape)]))
        else:
            yield each.dtype, each.shape


def _joined(shape: _Shape, places: Any) -> Any:
    return tf.SparseTensor(next(places), next(places), next(places)) if shape.sparse else next(places)


def _with_mode(estimator: Any, mode: str) -> Any:
    """Sets the mode, from which TPUEstimator determines the batch size."""
    context = getattr(estimator, "_ctx", None)
    return contextlib.nullcontext() if context is None else context.with_mode(mode)


class Feeder(v1.train.SessionRunHook):
    """Feeds one batch per step, and requests the end after the last one."""

    def __init__(self, feed: Feed) -> None:
        self._feed, self._left = feed, list(feed.batches)

    def before_run(self, run_context: Any) -> Any:
        """Feeds the next batch."""
        return v1.train.SessionRunArgs(None, feed_dict=self._feed.feed(self._left.pop(0)))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Requests the end if no batch is left."""
        if not self._left:
            run_context.request_stop()


class Recorder(Feeder):
    """Records loss, gradients and weights of a training, in addition to its own steps."""

    def __init__(self, feed: Feed, spec_of: Any) -> None:
        super().__init__(feed)
        self._spec_of, self._feeding = spec_of, feed
        self.losses: list[Any] = []
        self.weights: list[Any] = []
        self.gradients: list[Any] = []
        self.random = False

    def begin(self) -> None:
        """Adds the gradients to the graph."""
        self._loss = self._spec_of().loss
        self._variables = {_name(each): each for each in v1.global_variables()}
        trained = v1.trainable_variables()
        self.trainable = [_name(each) for each in trained]
        found = zip(trained, tf.gradients(self._loss, trained))
        self._gradients = {_name(each): tf.convert_to_tensor(slope) for each, slope in found if slope is not None}

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Records the weights at the start."""
        self.weights.append(session.run(self._variables))

    def before_run(self, run_context: Any) -> Any:
        """Requests the values of the batch that the step itself does not return."""
        fed = self._feeding.feed(self._left[0])
        session = run_context.session
        self.gradients.append(session.run(self._gradients, fed))
        if not self.losses:
            self.random = session.run(self._loss, fed) != session.run(self._loss, fed)
        self.losses.append(session.run(self._loss, fed))
        return super().before_run(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Records the weights after the step."""
        self.weights.append(run_context.session.run(self._variables))


def _name(variable: Any) -> str:
    info = variable._get_save_slice_info() if hasattr(variable, "_get_save_slice_info") else None
    if info is not None and tuple(info.full_shape) == tuple(variable.shape.as_list()):
        return info.full_name
    return variable.op.name


def _evaluated(estimator: Any, feed: Feed, checkpoint: str) -> Any:
    """Returns the metrics and predictions of a checkpoint."""
    metrics = estimator.evaluate(
        feed.input_fn, steps=len(feed.batches), hooks=[Feeder(feed)], checkpoint_path=checkpoint
    )
    predicted = estimator.predict(
        feed.features_fn, hooks=[_Features(feed)], checkpoint_path=checkpoint, yield_single_examples=False
    )
    return {"metrics": dict(metrics), "predictions": list(predicted)}


class _Features(Feeder):
    """Feeds the features for predictions."""

    def before_run(self, run_context: Any) -> Any:
        """Feeds the features of the next batch."""
        batch = {"features": self._left.pop(0)["features"]}
        return v1.train.SessionRunArgs(None, feed_dict=self._feed.feed(batch))


def _program(path: str, function: str) -> Any:
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec: Any = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise SystemExit(f"{path} defines no function {function}(model_dir).")
    return getattr(module, function)


def main(path: str, function: str, folder: str, steps: int, eval_batches: int) -> None:
    """Runs the program and writes `record.json` and `arrays.npz`."""
    model_dir = tempfile.mkdtemp()
    parts = _program(path, function)(model_dir)
    estimator = parts["estimator"]
    original, specs = estimator._call_model_fn, {}

    def noted(features: Any, labels: Any, mode: str, config: Any) -> Any:
        specs[mode] = original(features, labels, mode, config)
        return specs[mode]

    estimator._call_model_fn = noted
    train = Feed(estimator, parts["train_input_fn"], TRAIN, steps, parts.get("train_hooks", ()))
    eval_fn = parts.get("eval_input_fn", parts["train_input_fn"])
    evaluation = Feed(estimator, eval_fn, EVAL, eval_batches, parts.get("eval_hooks", ()))
    recorder = Recorder(train, lambda: specs[TRAIN])
    estimator.train(train.input_fn, steps=len(train.batches), hooks=[recorder])
    first = os.path.join(estimator.model_dir, "model.ckpt-0")
    last = estimator.latest_checkpoint()
    if not v1.train.checkpoint_exists(first) or last == first:
        raise SystemExit("The program saves no checkpoint at its start. Set RunConfig(save_checkpoints_steps=1000).")
    arrays = Arrays()
    record = {
        "tensorflow": tf.__version__,
        "python": sys.version.split()[0],
        "random": bool(recorder.random),
        "trainable": recorder.trainable,
        "train_batches": arrays.tree(train.batches),
        "eval_batches": arrays.tree(evaluation.batches),
        "losses": arrays.tree(recorder.losses),
        "gradients": arrays.tree(recorder.gradients[0]),
        "later_gradients": arrays.tree(recorder.gradients[1:]),
        "weights": arrays.tree(recorder.weights),
        "start": arrays.tree(_evaluated(estimator, evaluation, first)),
        "end": arrays.tree(_evaluated(estimator, evaluation, last)),
    }
    os.makedirs(folder, exist_ok=True)
    np.savez_compressed(os.path.join(folder, "arrays.npz"), **cast(Any, arrays.kept))
    with open(os.path.join(folder, "record.json"), "w") as file:
        json.dump(record, file, sort_keys=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
