"""The parts of the ported mnist_experiment.py that are compared."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ported"))
import mnist_experiment

import estimator_core as ec


def digits(model_dir):
    hparams = mnist_experiment.make_hparams()
    hparams.dropout_keep, hparams.learning_rate = 1.0, 4e-5
    config = ec.RunConfig(tf_random_seed=8, model_dir=model_dir)
    train_fn, train_hook = mnist_experiment.make_input(*mnist_experiment.draw_digits(2000, 5), 64, True)
    eval_fn, eval_hook = mnist_experiment.make_input(*mnist_experiment.draw_digits(400, 6), 64, False)
    return {
        "estimator": ec.Estimator(model_fn=mnist_experiment.model_fn, params=hparams, config=config),
        "train_input_fn": train_fn,
        "eval_input_fn": eval_fn,
        "train_hooks": [train_hook],
        "eval_hooks": [eval_hook],
    }
