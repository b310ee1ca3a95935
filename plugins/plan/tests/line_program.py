"""The experiment that the tests plan with the command: a line, in batches of 8."""

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec

HPARAMS = ec.HParams(rate=0.3, train_steps=20)


def model_fn(features, labels, mode, params):
    y = features["x"] * ec.get_variable("slope", ()) + ec.get_variable("offset", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    loss = jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(params.rate))


def experiment_fn(run_config, hparams):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    inputs = {"x": {"x": x}, "y": 3 * x + 1, "batch_size": 8, "shuffle": False}
    return ec.Experiment(
        ec.Estimator(model_fn, config=run_config.replace(default_hooks=False), params=hparams),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=None),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=1),
        train_steps=hparams.train_steps,
    )
