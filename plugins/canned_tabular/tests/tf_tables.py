"""Runs the cases with the estimators of TensorFlow 2.15.1; imports nothing of this project but `table_cases`."""

import hashlib
import json
import os
import pathlib
import platform
import sys
import tempfile
import types
from importlib import metadata

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import numpy as np  # noqa: E402
import table_cases  # noqa: E402
import tensorflow as tf  # noqa: E402

tf.compat.v1.disable_eager_execution()
tf.get_logger().setLevel("ERROR")
FUNCTIONS = types.SimpleNamespace(
    **{name: getattr(tf.feature_column, name) for name in dir(tf.feature_column) if not name.startswith("_")},
    dtypes={"int64": tf.int64, "string": tf.string},
)


class SetWeights(tf.estimator.SessionRunHook):
    """Gives all variables of the model the values of `table_cases.initial_value`, and remembers their names."""

    def __init__(self):
        self.names = []

    def after_create_session(self, session, coord):
        for variable in model_variables():
            self.names.append(variable.op.name)
            if variable.op.name.startswith("baseline/"):  # begins at zero: setting it would need a batch
                continue
            value = table_cases.initial_value(variable.op.name, variable.shape.as_list())
            if variable.op.name.endswith(("moving_mean", "moving_variance")):
                value = np.zeros_like(value) if variable.op.name.endswith("mean") else np.ones_like(value)
            variable.load(value, session)


def model_variables():
    """Those that are trained, and what else belongs to a model; no counters and slots of optimizers."""
    trained = {one.op.name for one in tf.compat.v1.trainable_variables()}
    more = ("moving_mean", "moving_variance", "embedding_weights")
    every = tf.compat.v1.global_variables()
    return [one for one in every if one.op.name in trained or one.op.name.endswith(more)]


def optimizer(spec):
    """A Keras optimizer of the kind canned estimators take."""
    classes = tf.keras.optimizers.legacy
    kinds = {"RMSProp": "RMSprop"}
    return lambda: getattr(classes, kinds.get(spec["optimizer"], spec["optimizer"]))(learning_rate=spec["rate"])


def arguments_of(case, folder):
    made = {}
    for name, value in case["arguments"].items():
        if name.endswith("feature_columns"):
            value = table_cases.build_columns(value, FUNCTIONS, folder, own=False)
        elif name.endswith("optimizer"):
            value = optimizer(value)
        elif name == "head":
            value = getattr(tf.estimator, value)()
        elif name == "activation_fn":
            value = getattr(tf.nn, value)
        elif name == "loss_reduction":
            value = tf.keras.losses.Reduction.SUM
        made[name] = value
    return made


def run(case):
    """What a case gives after its steps: weights, metrics, predictions."""
    values = table_cases.table()
    labels = table_cases.labels_of(case, values)
    if case["estimator"].startswith("Baseline"):  # its check of several features cannot be initialised
        values["features"] = {"age": values["features"]["age"]}

    def input_fn(repeat):
        data = tf.data.Dataset.from_tensor_slices((values["features"], labels)).batch(table_cases.BATCH)
        return data.repeat() if repeat else data

    with tempfile.TemporaryDirectory() as folder:
        table_cases.write_files(folder)
        config = tf.estimator.RunConfig(model_dir=str(pathlib.Path(folder, "model")), tf_random_seed=1)
        make = getattr(tf.estimator, case["estimator"])
        estimator = make(config=config, **arguments_of(case, folder))
        setter = SetWeights()
        estimator.train(lambda: input_fn(True), steps=table_cases.STEPS, hooks=[setter])
        predictions = list(estimator.predict(lambda: input_fn(False)))
        return {
            "weights": {name: estimator.get_variable_value(name) for name in sorted(setter.names)},
            "metrics": estimator.evaluate(lambda: input_fn(False)),
            "predictions": {
                key: [row[key] for row in predictions[:8]] for key in predictions[0] if not key.startswith("all_")
            },
        }


def plain(value):
    """A JSON form; floats keep the shortest digits that name their float32 value."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(float(str(value))) if value.dtype == np.float32 else plain(value.item())
    return value


def write(script, cases, *sources):
    """Writes ``recorded/<name>.json`` for ``record_<name>.py``; RECORDED_FOLDER redirects it."""
    script = pathlib.Path(script).resolve()
    used = (script, FOLDER / "tf_tables.py", *(FOLDER / source for source in sources))
    header = {
        "script": script.name,
        "sources_sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in used},
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
