"""One process of a run in debug mode, whose second process reads a NaN in step 2: `debug_worker.py SETTINGS_JSON`."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    predictions = features["x"] @ ec.get_variable("kernel", (4,))
    loss = jnp.mean((predictions - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))


def batches(input_context: Any) -> Iterator[Any]:
    for step in (1, 2):
        x = np.ones((8, 4), np.float32)
        if step == 2 and input_context.input_pipeline_id == 1:
            x[2, 1] = np.nan
        yield {"x": x}, np.ones(8, np.float32)


if __name__ == "__main__":
    config = ec.RunConfig(model_dir=json.loads(sys.argv[1])["model_dir"], debug=True)
    ec.Estimator(model_fn, config=config).train(batches)
