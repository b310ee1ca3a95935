"""A run with averaged weights, early stopping, two evaluations and the best exports, for the tests that stop it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_exporters import BestExporter, FinalExporter
from estimator_hooks import AveragedWeightsEvaluatorHook, ema_of_weights, stop_if_no_increase_hook

HPARAMS = ec.HParams(train_steps=60, evaluate_every=20, patience=40)


def data(examples: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns points, and labels for the side of a curved line on which they lie."""
    x = np.random.default_rng(seed).normal(size=(examples, 4)).astype(np.float32)
    return {"x": x}, (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int32)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A model with a hidden layer with dropout, and an optimizer that averages the weights."""
    hidden = jnp.tanh(features["x"] @ ec.get_variable("hidden", (4, 16), jax.nn.initializers.normal(0.5)))
    if mode == ec.ModeKeys.TRAIN:
        hidden = hidden * jax.random.bernoulli(ec.next_rng_key(), 0.9, hidden.shape)
    logits = hidden @ ec.get_variable("logits", (16,), jax.nn.initializers.normal(0.5))
    classes = (logits > 0).astype(jnp.int32)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"logits": logits, "classes": classes})
    losses = optax.sigmoid_binary_cross_entropy(logits, labels)
    return ec.EstimatorSpec(
        mode,
        loss=losses.mean(),
        train_op=optax.chain(optax.adam(0.05), ema_of_weights(0.9)),
        eval_metric_ops={"accuracy": ec.metrics.accuracy(labels, classes)},
    )


def inputs(examples: int, seed: int, *, train: bool) -> Any:
    """Returns an input of batches of 32, shuffled and endless for training."""
    return ec.inputs.numpy_input_fn(
        *data(examples, seed), batch_size=32, num_epochs=None if train else 1, shuffle=train, seed=seed
    )


def train(config: ec.RunConfig, hparams: Any, hooks: Sequence[ec.Hook]) -> None:
    """Trains, evaluates and exports."""
    every = hparams.evaluate_every
    estimator = ec.Estimator(model_fn, config=config.replace(save_checkpoints_steps=every, keep_checkpoint_max=2))
    serving = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 4), "float32")})
    held_out = inputs(64, 2, train=False)
    hooks = [
        stop_if_no_increase_hook(
            estimator, "accuracy", hparams.patience, eval_name="few", run_every_secs=None, run_every_steps=every
        ),
        AveragedWeightsEvaluatorHook(estimator, held_out, name="ema", every_n_iter=every // 2),
        *hooks,
    ]
    ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(inputs(512, 1, train=True), max_steps=hparams.train_steps, hooks=hooks),
        [
            ec.EvalSpec(
                inputs(256, 3, train=False),
                name="many",
                exporters=[BestExporter("best", serving, exports_to_keep=2), FinalExporter("final", serving)],
                start_delay_secs=0,
            ),
            ec.EvalSpec(held_out, name="few", every_steps=every // 2, start_delay_secs=0),
        ],
    )
