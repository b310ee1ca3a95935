"""Writes SavedModels of TensorFlow Estimators, the description that TensorFlow reads from them, and their outputs.

Run it in an environment with tensorflow-cpu 2.15.1 or 1.15.0: `python record_saved_models.py FOLDER`.
"""

import base64
import json
import os
import shutil
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
fc = tf.feature_column
COLORS = ["red", "green", "blue"]


def table():
    rng = np.random.RandomState(0)
    features = {
        "age": rng.randn(32).astype(np.float32),
        "pair": rng.randn(32, 2).astype(np.float32),
        "color": rng.choice(COLORS, 32),
        "city": rng.choice(["Rome", "Oslo", "Bonn"], 32),
        "code": rng.randint(0, 5, 32).astype(np.int64),
    }
    return features, np.array(["yes", "no"])[(features["age"] > 0).astype(int)]


def columns(folder):
    path = folder / "cities.txt"
    path.write_text("Rome\nOslo\nBonn\n")
    color = fc.categorical_column_with_vocabulary_list("color", COLORS)
    city = fc.categorical_column_with_vocabulary_file("city", str(path), 3, num_oov_buckets=2)
    code = fc.categorical_column_with_identity("code", 5, default_value=0)
    numbers = [fc.numeric_column("age", default_value=0.5), fc.numeric_column("pair", shape=(2,))]
    return [*numbers, fc.indicator_column(color), fc.embedding_column(city, 2), fc.indicator_column(code)]


def classifier(folder):
    used = columns(folder)
    config = tf.estimator.RunConfig(tf_random_seed=1)
    words = {"n_classes": 2, "label_vocabulary": ["no", "yes"], "config": config}
    estimator = tf.estimator.DNNClassifier([4], used, model_dir=str(folder / "run"), **words)
    estimator.train(lambda: tf.data.Dataset.from_tensor_slices(table()).repeat().batch(8), steps=3)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(fc.make_parse_example_spec(used))
    return estimator.export_saved_model(str(folder / "exports"), receiver)


def raw(folder):
    def model_fn(features, labels, mode):
        kernel = v1.get_variable("kernel", [2, 1], v1.float32, v1.ones_initializer())
        y = tf.matmul(features["x"], kernel) + tf.cast(features["n"], tf.float32)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
        loss = tf.reduce_mean(y**2)
        step = v1.train.GradientDescentOptimizer(0.0).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    data = {"x": np.ones((4, 2), np.float32), "n": np.ones((4, 1), np.int32)}
    estimator = tf.estimator.Estimator(model_fn, str(folder / "raw_run"))
    estimator.train(lambda: tf.data.Dataset.from_tensors((data, np.ones(4, np.float32))), steps=1)
    x, n = v1.placeholder(tf.float32, [None, 2], name="x"), v1.placeholder(tf.int32, [None, 1], name="n")
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": x, "n": n})
    return estimator.export_saved_model(str(folder / "raw_exports"), receiver)


def own_names(folder):
    """Exports records under a custom name, a second receiver, and sequences."""

    def receiver():
        records = v1.placeholder(tf.string, [None], name="records")
        spec = {
            "grid": tf.io.FixedLenFeature([2, 2], tf.float32, [[1.0, 2.0], [3.0, 4.0]]),
            "steps": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=-1),
        }
        parsed = tf.io.parse_example(records, spec)
        alternative = {"other": {"grid": v1.placeholder(tf.float32, [None, None, 2], name="grid")}}
        return tf.estimator.export.ServingInputReceiver(parsed, {"clients": records}, alternative)

    def model_fn(features, labels, mode):
        scale = v1.get_variable("scale", [], v1.float32, v1.ones_initializer())
        total = scale * tf.reduce_sum(features["grid"], [1, 2])
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"total": total})
        loss = tf.reduce_mean(total)
        step = v1.train.GradientDescentOptimizer(0.0).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    estimator = tf.estimator.Estimator(model_fn, str(folder / "own_run"))
    data = {"grid": np.ones((4, 2, 2), np.float32), "steps": np.ones((4, 1), np.int64)}
    estimator.train(lambda: tf.data.Dataset.from_tensors((data, np.ones(4, np.float32))), steps=1)
    return estimator.export_saved_model(str(folder / "own_exports"), receiver)


def functions(folder):
    """Writes a SavedModel of TensorFlow 2 that no Estimator wrote."""

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64, "ids")])
        def total(self, ids):
            return {"total": tf.reduce_sum(ids, 1)}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
        def parse(self, examples):
            spec = {"word": tf.io.FixedLenFeature([], tf.string), "rows": tf.io.RaggedFeature(tf.int64)}
            return {"word": tf.io.parse_example(examples, spec)["word"]}

    module = Module()
    tf.saved_model.save(module, str(folder / "made"), {"serving_default": module.total, "parsed": module.parse})
    return str(folder / "made")


def example(**features):
    made = tf.train.Example()
    for name, values in features.items():
        kinds = {str: "bytes_list", int: "int64_list", float: "float_list"}
        written = [value.encode() if isinstance(value, str) else value for value in values]
        getattr(made.features.feature[name], kinds[type(values[0])]).value.extend(written)
    return made.SerializeToString()


EXAMPLES = {
    "classifier": [
        example(age=[1.5], pair=[0.5, -1.0], color=["red"], city=["Rome"], code=[3]),
        example(pair=[2.0, 0.0], color=["blue", "green"], city=["Paris"], code=[9]),
        example(age=[-2.0], pair=[0.0, 0.25], color=["violet"]),
    ],
    "own_names": [example(grid=[4.0, 3.0, 2.0, 1.0], steps=[1, 2]), example(steps=[5])],
}


def described(directory, name):
    """Returns the description that TensorFlow itself reads, and the outputs."""
    with v1.Session(graph=tf.Graph()) as session:
        model = v1.saved_model.loader.load(session, ["serve"], directory)
        signatures = {
            key: {
                "method": one.method_name,
                "inputs": {key: tensor(info) for key, info in one.inputs.items()},
                "outputs": {key: tensor(info) for key, info in one.outputs.items()},
            }
            for key, one in model.signature_def.items()
            if not key.startswith("__")
        }
        answers = {}
        if name in EXAMPLES:
            one = model.signature_def["predict" if "predict" in model.signature_def else "serving_default"]
            (records,) = one.inputs.values()
            fetched = session.run({key: info.name for key, info in one.outputs.items()}, {records.name: EXAMPLES[name]})
            answers = {key: [[plain(v) for v in np.ravel(row)] for row in value] for key, value in fetched.items()}
    records = [base64.b64encode(record).decode() for record in EXAMPLES.get(name, [])]
    return {"signatures": signatures, "examples": records, "answers": answers}


def plain(value):
    return value.decode() if isinstance(value, bytes) else value.item()


def tensor(info):
    sizes = None if info.tensor_shape.unknown_rank else [None if d.size < 0 else d.size for d in info.tensor_shape.dim]
    return {"dtype": tf.as_dtype(info.dtype).name, "shape": sizes}


def main(folder):
    v1.logging.set_verbosity(v1.logging.ERROR)
    shutil.rmtree(str(folder), ignore_errors=True)
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    made = [functions] if tf.__version__.startswith("2") else []
    for write in [*made, classifier, raw, own_names]:
        if write is not functions:
            v1.disable_eager_execution()
        path = write(scratch)
        place = folder / write.__name__
        shutil.copytree(path if isinstance(path, str) else path.decode(), str(place))
        (place / "fingerprint.pb").unlink() if (place / "fingerprint.pb").exists() else None
        (place / "expected.json").write_text(json.dumps(described(str(place), write.__name__)) + "\n")
    shutil.rmtree(str(scratch))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
