"""Handwritten digits: custom model_fn, HParams, Experiment, learn_runner and the iterator-initialiser hook.

uv run estimator run examples/digits_convnet.py
uv run estimator run examples/digits_convnet.py --hparams "learning_rate=0.001,train_steps=1000" --model-dir runs/slow
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

import estimator_core as ec
from estimator_exporters import FinalExporter
from estimator_hooks import IteratorInitializerHook, LoggingTensorHook

HPARAMS = ec.HParams(learning_rate=0.002, batch_size=64, train_steps=600, min_eval_frequency=200)


class ConvNet(nnx.Module):
    """Two convolutions, pooling, a hidden layer with dropout, and the logits of ten classes."""

    def __init__(self, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 20, (3, 3), rngs=rngs)
        self.conv2 = nnx.Conv(20, 40, (3, 3), rngs=rngs)
        self.dense = nnx.Linear(4 * 4 * 40, 128, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)
        self.output = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, images, *, training):
        x = nnx.relu(self.conv1(images))
        x = nnx.max_pool(nnx.relu(self.conv2(x)), window_shape=(2, 2), strides=(2, 2))
        x = nnx.relu(self.dense(x.reshape(x.shape[0], -1)))
        return self.output(self.dropout(x, deterministic=not training))


def model_fn(features, labels, mode: ec.ModeKeys, params):
    """Defines the model for training, evaluation and prediction."""
    network = ec.module(ConvNet, name="conv_net")
    logits = network(features["image"], training=mode == ec.ModeKeys.TRAIN)
    predictions = {"class_ids": jnp.argmax(logits, axis=-1), "probabilities": jax.nn.softmax(logits)}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    ec.summary.scalar("batch_accuracy", (predictions["class_ids"] == labels).mean())
    return ec.EstimatorSpec(
        mode,
        predictions=predictions,
        loss=loss,
        train_op=optax.inject_hyperparams(optax.adam)(learning_rate=params.learning_rate),
        eval_metric_ops={"accuracy": ec.metrics.accuracy(labels, predictions["class_ids"])},
    )


def digits_input_fn(training, batch_size):
    """Returns an input_fn and the hook that loads the arrays just before the first batch is drawn."""
    hook = IteratorInitializerHook()
    arrays = {}

    def load(run):
        pixels, classes = load_digits(return_X_y=True)
        held_out = np.arange(len(classes)) % 5 == 0
        rows = ~held_out if training else held_out
        arrays["image"] = (pixels.reshape(-1, 8, 8, 1)[rows] / 16.0).astype(np.float32)
        arrays["label"] = classes[rows].astype(np.int32)

    hook.iterator_initializer_func = load

    def arrays_when_drawn():
        if not arrays:  # prediction runs without the hook
            load(None)
        return {"image": arrays["image"]}, arrays["label"]

    input_fn = ec.inputs.numpy_input_fn(
        arrays_when_drawn,  # called at the first draw
        batch_size=batch_size,
        num_epochs=None if training else 1,
        shuffle=training,
        seed=7,
    )
    return input_fn, hook


def digits_batches(training, batch_size):
    """Returns only the input_fn, for digits.toml. The arrays are loaded at the first draw."""
    return digits_input_fn(training, batch_size)[0]


def serving_input_receiver_fn():
    """Returns the receiver. Requests contain images of 8 x 8 grey values in [0, 1]."""
    image = ec.export.Feature((None, 8, 8, 1), "float32")
    return ec.export.build_raw_serving_input_receiver_fn({"image": image})()


def experiment_fn(run_config, params):
    """Returns the Experiment: the model, its inputs and its plan."""
    run_config = run_config.replace(save_checkpoints_steps=params.min_eval_frequency)
    train_input_fn, train_hook = digits_input_fn(training=True, batch_size=params.batch_size)
    eval_input_fn, eval_hook = digits_input_fn(training=False, batch_size=100)
    return ec.Experiment(
        estimator=ec.Estimator(model_fn, config=run_config, params=params),
        train_input_fn=train_input_fn,
        eval_input_fn=eval_input_fn,
        train_steps=params.train_steps,
        min_eval_frequency=params.min_eval_frequency,
        train_hooks=[train_hook, LoggingTensorHook(["loss", "batch_accuracy"], every_n_iter=100)],
        eval_hooks=[eval_hook],
        eval_steps=None,
        export_strategies=[FinalExporter("final", serving_input_receiver_fn)],
    )


if __name__ == "__main__":
    metrics, _ = ec.learn_runner.run(
        experiment_fn,
        run_config=ec.RunConfig(model_dir="runs/digits", tf_random_seed=1),
        schedule="train_and_evaluate",
        hparams=HPARAMS,
    )
    print(metrics)  # accuracy above 0.97
