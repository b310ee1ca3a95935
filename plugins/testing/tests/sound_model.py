"""A sound model: logistic regression on the feature "x"."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec


class SoundModel(ec.Estimator):
    def __init__(self, config, model_fn=None):
        super().__init__(model_fn or logistic_model_fn, config=config)


def logits_of(features):
    return features["x"] @ ec.get_variable("kernel", (3,)) + ec.get_variable("bias", ())


def logistic_model_fn(features, labels, mode):
    logits = logits_of(features)
    predictions = {"probability": jax.nn.sigmoid(logits)}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions)
    losses = optax.sigmoid_binary_cross_entropy(logits, labels.astype(jnp.float32))
    real = ec.example_weights()
    return ec.EstimatorSpec(
        mode,
        loss=losses.mean() if real is None else (losses * real).sum() / real.sum(),
        train_op=optax.adam(0.1),
        eval_metric_ops={"accuracy": ec.metrics.accuracy(labels, logits > 0), "average_loss": ec.metrics.mean(losses)},
    )


def examples(rng):
    x = rng.normal(size=(40, 3)).astype(np.float32)
    return {"x": x}, (x.sum(axis=1) > 0).astype(np.int32)
