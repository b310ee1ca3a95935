"""A linear model with known weights, on a word and two numbers, of which one matters and one does not."""

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec


class Lengths:
    """A host transform that replaces a word by its number of letters."""

    name, version, files = "lengths", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        return {
            **{name: array for name, array in batch.items() if name != "word"},
            "letters": np.array([len(word) for word in batch["word"]], np.int32),
        }


def model_fn(features, labels, mode):
    x, useless = features["x"], features["useless"]
    letters = jnp.asarray(features["letters"], jnp.float32)
    y = 3.0 * x * x + ec.get_variable("slope", ()) * letters + 0.0 * useless
    predictions = {"logits": y}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions)
    loss = jnp.mean((y - labels) ** 2)
    return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=optax.sgd(0.01))


model_fn.host_transforms = (Lengths(),)

RNG = np.random.default_rng(0)
ROWS = {
    "x": RNG.normal(size=96).astype(np.float32),
    "useless": RNG.normal(size=96).astype(np.float32),
    "word": RNG.choice(["a", "bb", "cccc"], 96),
}
NOISE = 0.5 * RNG.normal(size=96)
LABELS = (3 * ROWS["x"] ** 2 + 2 * np.char.str_len(ROWS["word"]) + NOISE).astype(np.float32)


def input_fn(batch_size=40):
    return ec.inputs.numpy_input_fn(ROWS, LABELS, batch_size=batch_size, num_epochs=1, shuffle=False)


def trained(model_dir):
    estimator = ec.Estimator(model_fn, str(model_dir), ec.RunConfig(tf_random_seed=1))
    many = ec.inputs.numpy_input_fn(ROWS, LABELS, batch_size=32, num_epochs=None, shuffle=True, seed=0)
    return estimator.train(many, steps=60)


def experiment_fn(config, hparams):
    """Returns the experiment that `estimator run` trains."""
    return ec.Experiment(ec.Estimator(model_fn, config=config), input_fn(32), input_fn(32), train_steps=3)
