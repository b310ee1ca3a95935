"""The parts of mnist_experiment.py that are compared, with Python 3.7 and tensorflow-cpu 1.15.0.

Dropout is left out because it is random. The rate is divided by 100, because the first steps of Adam are full steps
even for gradients that are pure rounding errors. An example is the gradient of a bias before a batch normalisation.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import mnist_experiment
import tensorflow as tf


def digits(model_dir):
    hparams = tf.contrib.training.HParams(
        learning_rate=4e-5, batch_size=64, train_steps=150, min_eval_frequency=50, dropout_keep=1.0, l2=1e-4
    )
    config = tf.contrib.learn.RunConfig(tf_random_seed=8).replace(model_dir=model_dir)
    train_fn, train_hook = mnist_experiment.make_input(*mnist_experiment.draw_digits(2000, 5), 64, True, "train_data")
    eval_fn, eval_hook = mnist_experiment.make_input(*mnist_experiment.draw_digits(400, 6), 64, False, "eval_data")
    return {
        "estimator": tf.estimator.Estimator(model_fn=mnist_experiment.model_fn, params=hparams, config=config),
        "train_input_fn": train_fn,
        "eval_input_fn": eval_fn,
        "train_hooks": [train_hook],
        "eval_hooks": [eval_hook],
    }
