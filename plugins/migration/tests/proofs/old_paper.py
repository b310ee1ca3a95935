"""The parts of paper.py that are compared, in an environment with Python 3.7 and tensorflow-cpu 1.15.0."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import paper
import tensorflow as tf


def _parts(estimator):
    return {"estimator": estimator, "train_input_fn": paper.train_input, "eval_input_fn": paper.eval_input}


def _config():
    columns = [tf.feature_column.numeric_column(m) for m in paper.MEASURES]
    return columns, tf.estimator.RunConfig(save_checkpoints_steps=60, tf_random_seed=9)


def custom(model_dir):
    columns, config = _config()
    params = {"columns": columns, "units": 12, "depth": 2, "rate": 0.1, "sync": False}
    return _parts(tf.estimator.Estimator(paper.custom_model_fn, params=params, config=config, model_dir=model_dir))


def canned(model_dir):
    columns, config = _config()
    classifier = tf.estimator.DNNClassifier(
        hidden_units=[12, 12], feature_columns=columns, n_classes=paper.KINDS, config=config, model_dir=model_dir
    )
    return _parts(classifier)
