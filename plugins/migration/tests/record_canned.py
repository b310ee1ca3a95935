"""Records checkpoints of canned Estimators of TensorFlow after 20 steps, and what they hold after 40.

Run in an environment with tensorflow-cpu 2.15.1: `python record_canned.py FOLDER`.
"""

import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
OPTIMIZERS = ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD")
fc = tf.feature_column


def table():
    rng = np.random.RandomState(0)
    features = {
        "a": rng.randn(64).astype(np.float32),
        "b": rng.randn(64).astype(np.float32),
        "c": rng.choice(["x", "y", "z"], 64),
    }
    return features, (features["a"] + features["b"] > 0).astype(np.int64)


def input_fn():
    features, labels = table()
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(16)


def make(optimizer, model_dir, steps):
    c = fc.categorical_column_with_vocabulary_list("c", ["x", "y", "z"])
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[c, fc.numeric_column("a")],
        linear_optimizer=optimizer,
        dnn_feature_columns=[fc.numeric_column("a"), fc.numeric_column("b"), fc.embedding_column(c, 2)],
        dnn_optimizer=optimizer,
        dnn_hidden_units=[4, 3],
        model_dir=str(model_dir),
        config=tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=steps),
    )


def main(folder):
    tf.get_logger().setLevel("ERROR")
    for optimizer in OPTIMIZERS:
        model_dir = folder / optimizer
        estimator = make(optimizer, model_dir, 20)
        estimator.train(input_fn, max_steps=20)
        kept = {path.name: path.read_bytes() for path in model_dir.glob("model.ckpt-20.*") if path.suffix != ".meta"}
        estimator.train(input_fn, max_steps=40)
        after = {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}
        for path in sorted(model_dir.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for name, data in kept.items():
            (model_dir / name).write_bytes(data)
        (model_dir / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-20"\n')
        np.savez_compressed(folder / f"{optimizer}_after.npz", **{n.replace("/", "|"): v for n, v in after.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
