"""The parts of guide.py that are compared, with tensorflow-cpu 2.15.1. Dropout is left out because it is random."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import guide
import numpy as np
import tensorflow as tf


def _tables():
    return (*guide.make_passengers(1500, seed=31), *guide.make_passengers(400, seed=32))


def _parts(name, model_dir):
    train, train_y, test, test_y = _tables()
    wide, deep = guide.build_columns(train)
    if name == "deep":
        estimator = tf.estimator.DNNClassifier(
            hidden_units=[24, 12],
            feature_columns=deep,
            optimizer=lambda: tf.keras.optimizers.legacy.Adam(0.005),
            config=tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=17),
        )
    else:
        estimator = guide.build_estimators(wide, deep, model_dir)[name]
    return {
        "estimator": estimator,
        "train_input_fn": guide.make_input_fn(train, train_y, shuffle=True),
        "eval_input_fn": guide.make_input_fn(test, test_y, epochs=1),
    }


def linear(model_dir):
    return _parts("linear", model_dir)


def deep(model_dir):
    return _parts("deep", model_dir)


def combined(model_dir):
    return _parts("combined", model_dir)


def keras(model_dir):
    """Repeats keras_route, which trains at once, with the input name of the port."""
    model = tf.keras.Sequential(
        [
            tf.keras.Input((3,), name="numbers"),
            tf.keras.layers.Dense(16, activation="relu", name="body"),
            tf.keras.layers.Dense(1, activation="sigmoid", name="returns"),
        ]
    )
    optimizer = tf.keras.optimizers.legacy.Adam(0.01)
    model.compile(optimizer=optimizer, loss="binary_crossentropy", metrics=["accuracy"])
    train, train_y, test, test_y = _tables()

    def numbers_input(table, labels, epochs):
        values = np.stack([table[n] for n in ("years", "party", "price")], axis=1) / [50.0, 5.0, 30.0]
        features, target = {"numbers": values.astype(np.float32)}, labels.astype(np.float32)[:, None]
        return lambda: tf.data.Dataset.from_tensor_slices((features, target)).repeat(epochs).batch(32)

    return {
        "estimator": tf.keras.estimator.model_to_estimator(keras_model=model, model_dir=model_dir),
        "train_input_fn": numbers_input(train, train_y, None),
        "eval_input_fn": numbers_input(test, test_y, 1),
    }
