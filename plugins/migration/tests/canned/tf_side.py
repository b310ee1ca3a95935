"""Trains the canned estimators with TensorFlow for twice 50 steps, and keeps the checkpoints of steps 50 and 100.

Run it with an interpreter that has tensorflow-cpu 2.15.1 or 1.15.0: `python tf_side.py FOLDER [CASE ...]`.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import cases
import tensorflow as tf

FIRST = tf.__version__.startswith("1.")


def optimizer_of(name):
    """Returns what a program passes: a name, or a function that makes one optimizer for each part of the model."""
    if name != "Momentum":
        return name
    if FIRST:
        return lambda: tf.train.MomentumOptimizer(cases.RATE, cases.MOMENTUM)
    return lambda: tf.keras.optimizers.legacy.SGD(cases.RATE, cases.MOMENTUM)


def train(estimator, optimizer, model_dir):
    """Trains one case. Regression of TensorFlow 1 uses the mean over a batch, because SGD on the sum ends in NaN."""
    given = cases.arguments(estimator, tf.feature_column, optimizer_of(optimizer))
    if FIRST and estimator.endswith("Regressor"):
        given["loss_reduction"] = tf.losses.Reduction.SUM_OVER_BATCH_SIZE
    config = tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=cases.STEPS, save_summary_steps=None)
    made = getattr(tf.estimator, estimator)(model_dir=model_dir, config=config, **given)

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(cases.table(estimator)).repeat().batch(cases.BATCH)

    made.train(input_fn, max_steps=2 * cases.STEPS)
    kept = tuple(f"model.ckpt-{step}." for step in (cases.STEPS, 2 * cases.STEPS))
    for name in os.listdir(model_dir):
        path = os.path.join(model_dir, name)
        if os.path.isfile(path) and (not name.startswith(kept) or name.endswith(".meta")):
            os.remove(path)


def main(folder, wanted):
    tf.compat.v1.logging.set_verbosity("ERROR")
    for estimator, optimizer in cases.names():
        name = cases.folder_of(tf.__version__, estimator, optimizer)
        if not wanted or name in wanted:
            train(estimator, optimizer, os.path.join(folder, name))
            sys.stdout.write(name + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
