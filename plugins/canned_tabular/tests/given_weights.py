"""Estimators that start with given weights, from a checkpoint that contains them."""

import numpy as np
import optax

import estimator_core as ec

QUIET = {"default_hooks": False, "save_summary_steps": 0}


def checkpoint_of(values, folder):
    """Writes a checkpoint whose variables have the given values by name. Returns its model_dir."""

    def model_fn(features, labels, mode):
        total = sum(ec.get_variable(name, initializer=np.asarray(value)).sum() for name, value in values.items())
        return ec.EstimatorSpec(mode, loss=0.0 * total, train_op=optax.sgd(0.0))

    config = ec.RunConfig(model_dir=str(folder), tf_random_seed=0, **QUIET)
    ec.Estimator(model_fn, config=config).train(lambda: [{"x": np.zeros((1, 1), np.float32)}], steps=1)
    return str(folder)


def inputs(features, labels=None, repeat=1):
    """An input_fn of one batch."""
    arrays = {name: np.asarray(value) for name, value in features.items()}
    batch = arrays if labels is None else (arrays, np.asarray(labels))
    return lambda: [batch] * repeat


def estimator_with(make, values, tmp_path, **arguments):
    """An estimator that starts with the given values."""
    start = checkpoint_of(values, tmp_path / "given")
    config = ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=0, **QUIET)
    return make(config=config, warm_start_from=start, **arguments)
