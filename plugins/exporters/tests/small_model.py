"""A small model with raw variables, its data and its receiver."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec


def model_fn(features, labels, mode):
    hidden = jnp.tanh(features["x"] @ ec.get_variable("hidden/kernel", (3, 4), jax.nn.initializers.normal(1.0)))
    logits = hidden @ ec.get_variable("output/kernel", (4, 2), jax.nn.initializers.normal(1.0))
    predictions = {"logits": logits, "class_ids": jnp.argmax(logits, axis=-1)}
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=optax.sgd(0.1))


def rows(count, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)
    return {"x": x}, (x.sum(axis=1) > 0).astype(np.int32)


def input_fn(count=16, batch_size=8):
    return ec.inputs.numpy_input_fn(*rows(count), batch_size=batch_size, num_epochs=1, shuffle=False)


def receiver_fn():
    return ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3))})()


def trained(model_dir, model_fn=model_fn, **arguments):
    config = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1)
    return ec.Estimator(model_fn, config=config, **arguments).train(input_fn(), steps=2)
