"""Digit classifier driven by an Experiment.

The program mnist_experiment.py of TensorFlow 1.15 after `estimator migrate rewrite --write`, with the notes followed by
hand. The digits are seven-segment figures drawn with noise.
"""

import argparse
import logging
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
import estimator_heads
import estimator_hooks
from estimator_core import ModeKeys, learn_runner

logging.basicConfig(level=logging.WARNING)
logging.getLogger("estimator_core").setLevel(logging.INFO)

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir", default=None, help="Where to keep checkpoints.")
parser.add_argument("--hparams", default="", help="Overrides, e.g. dropout_keep=0.8")

# Segments lit for 0..9, in the order top, upper left, upper right, middle,
# lower left, lower right, bottom.
SEGMENTS = [
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
]
STROKES = [
    (slice(4, 6), slice(9, 19)),
    (slice(5, 14), slice(8, 10)),
    (slice(5, 14), slice(18, 20)),
    (slice(13, 15), slice(9, 19)),
    (slice(14, 23), slice(8, 10)),
    (slice(14, 23), slice(18, 20)),
    (slice(22, 24), slice(9, 19)),
]


def draw_digits(count, seed):
    """Returns float images [count, 28, 28, 1] and int64 labels [count]."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(10, size=count).astype(np.int64)
    images = np.zeros([count, 28, 28], np.float32)
    for image, label in zip(images, labels, strict=True):
        for lit, stroke in zip(SEGMENTS[label], STROKES, strict=True):
            if lit == "1":
                image[stroke] = rng.uniform(0.6, 1.0)
        image[:] = np.roll(image, rng.randint(-3, 4, size=2), axis=(0, 1))
    images += rng.normal(0, 0.15, images.shape)
    return np.clip(images, 0, 1)[..., None].astype(np.float32), labels


def make_input(images, labels, batch_size, training):
    """Pairs an input_fn with the hook that loads its arrays."""
    hook = estimator_hooks.IteratorInitializerHook()
    loaded = {}
    hook.iterator_initializer_func = lambda run: loaded.update(images=images, labels=labels)

    def input_fn():
        return ec.inputs.numpy_input_fn(
            loaded["images"],
            loaded["labels"],
            batch_size=batch_size,
            shuffle=training,
            num_epochs=None if training else 1,
        )

    return lambda: _opened_late(input_fn), hook


def _opened_late(input_fn):
    """The arrays are there once the hook has begun."""
    yield from ec.inputs.call_input_fn(input_fn(), {})


glorot, zeros = jax.nn.initializers.glorot_uniform(), jax.nn.initializers.zeros


def l2_regularizer(scale):
    return lambda weights: scale * jnp.sum(weights**2) / 2


def conv2d(net, filters, size, scope, stride=1):
    with ec.variable_scope(scope):
        weights = ec.get_variable("weights", (*size, net.shape[-1], filters), glorot)
        biases = ec.get_variable("biases", (filters,), zeros)
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.nn.relu(
        jax.lax.conv_general_dilated(net, weights, (stride, stride), "SAME", dimension_numbers=layout) + biases
    ), weights


def fully_connected(net, units, scope):
    with ec.variable_scope(scope):
        weights = ec.get_variable("weights", (net.shape[-1], units), glorot)
        return net @ weights + ec.get_variable("biases", (units,), zeros), weights


def batch_norm(net, decay, is_training, scope):
    """slim's: no scale; the moving variance is that of a sample."""
    count = net.size // net.shape[-1]
    with ec.variable_scope(scope):
        beta = ec.get_variable("beta", net.shape[-1:], zeros)
        mean = ec.get_variable("moving_mean", net.shape[-1:], zeros, trainable=False)
        variance = ec.get_variable("moving_variance", net.shape[-1:], jax.nn.initializers.ones, trainable=False)
        if is_training:
            old_mean, old_variance = mean, variance
            mean, variance = net.mean((0, 1, 2)), net.var((0, 1, 2))
            of_sample = variance * count / (count - 1)
            ec.set_variable("moving_mean", decay * old_mean + (1 - decay) * mean)
            ec.set_variable("moving_variance", decay * old_variance + (1 - decay) * of_sample)
    return (net - mean) / jnp.sqrt(variance + 0.001) + beta


def dropout(net, keep_prob, is_training):
    if not is_training or keep_prob == 1.0:
        return net
    return jnp.where(jax.random.bernoulli(ec.next_rng_key(), keep_prob, net.shape), net / keep_prob, 0.0)


def conv_net(images, params, is_training):
    """Two conv blocks and one hidden layer; returns logits and the regularisation loss."""
    with ec.variable_scope("SegmentNet"):
        net, conv1 = conv2d(images, 8, (5, 5), "conv1", stride=2)
        net = jax.lax.reduce_window(net, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        net, conv2 = conv2d(net, 16, (3, 3), "conv2")
        net = batch_norm(net, decay=0.9, is_training=is_training, scope="bn2")
        net = net.reshape(net.shape[0], -1)
        net, hidden = fully_connected(net, 64, "hidden")
        net = dropout(jax.nn.relu(net), params.dropout_keep, is_training)
        logits, out = fully_connected(net, 10, "out")
    return logits, sum(map(l2_regularizer(params.l2), (conv1, conv2, hidden, out)))


def model_fn(features, labels, mode, params):
    logits, regularisation = conv_net(features, params, is_training=(mode == ModeKeys.TRAIN))
    digit = jnp.argmax(logits, axis=-1)
    predictions = {"digit": digit, "probabilities": jax.nn.softmax(logits)}

    loss, train_op, metrics = None, None, {}
    if mode != ModeKeys.INFER:
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean() + regularisation
        metrics = {
            "Accuracy": ec.metrics.accuracy(labels, digit),
            "PerClass": estimator_heads.metrics.class_recall(labels, digit, 10),
        }
        ec.summary.image("digits", features[:2])
    if mode == ModeKeys.TRAIN:
        rate = optax.exponential_decay(params.learning_rate, params.train_steps, 0.3)
        train_op = optax.chain(optax.clip_by_global_norm(5.0), estimator_heads.adam(rate, epsilon=1e-8))

    return ec.EstimatorSpec(mode=mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def experiment_fn(run_config, hparams):
    run_config = run_config.replace(save_checkpoints_steps=hparams.min_eval_frequency)
    estimator = ec.Estimator(model_fn=model_fn, params=hparams, config=run_config)
    train_fn, train_hook = make_input(*draw_digits(2000, seed=5), batch_size=hparams.batch_size, training=True)
    eval_fn, eval_hook = make_input(*draw_digits(400, seed=6), batch_size=hparams.batch_size, training=False)
    return ec.Experiment(
        estimator=estimator,
        train_input_fn=train_fn,
        eval_input_fn=eval_fn,
        train_steps=hparams.train_steps,
        eval_steps=None,  # until the input ends
        min_eval_frequency=hparams.min_eval_frequency,
        train_monitors=[train_hook],
        eval_hooks=[eval_hook],
    )


def make_hparams():
    return ec.HParams(
        learning_rate=0.004, batch_size=64, train_steps=150, min_eval_frequency=50, dropout_keep=0.6, l2=1e-4
    )


def main(flags):
    hparams = make_hparams()
    hparams.parse(flags.hparams)
    run_config = ec.RunConfig(tf_random_seed=8)
    run_config = run_config.replace(model_dir=flags.model_dir or tempfile.mkdtemp())

    outcome = learn_runner.run(
        experiment_fn=experiment_fn, run_config=run_config, schedule="train_and_evaluate", hparams=hparams
    )
    logging.getLogger("estimator_core").info("Experiment returned %s", outcome)

    # The same model_fn in INFER mode, from the last checkpoint.
    images, labels = draw_digits(8, seed=7)
    input_fn, hook = make_input(images, labels, 8, False)
    estimator = ec.Estimator(model_fn=model_fn, params=hparams, config=run_config)
    for label, out in zip(labels, estimator.predict(input_fn, hooks=[hook]), strict=True):
        print(label, out["digit"], f"{out['probabilities'].max():.3f}")


if __name__ == "__main__":
    main(parser.parse_args())
