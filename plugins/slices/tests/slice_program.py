"""Evaluates one model by slice and prints the results as JSON.

The model is the same in one process or several, on any number of devices. The tests start it with a directory, a batch
size, and for several processes index and count. Process p of two reads every second batch-sized part of the examples.
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from estimator_core import metrics
from estimator_slices import SliceHook

ROWS = 203


def data():
    """Returns features, and labels that `x` predicts slightly."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(ROWS, 4)).astype(np.float32)
    return {
        "x": x,
        "weight": rng.uniform(0.1, 3.0, ROWS).astype(np.float32),
        "sex": rng.choice(np.array(["female", "male"]), ROWS),
        "pclass": rng.integers(1, 4, ROWS),
        "embarked": rng.choice(np.array(["S", "C", None], object), ROWS),
        "user": np.arange(ROWS) // 4,
    }, (x[:, 0] + rng.normal(size=ROWS) > 0).astype(np.int32)


def model_fn(features, labels, mode):
    """Returns a score with fixed weights, which the tests compute again."""
    kernel = ec.get_variable("kernel", (4,), lambda key, shape, dtype: jnp.array([1.0, -0.5, 0.25, 0.0], dtype))
    ec.summary.scalar("largest", jnp.max(features["x"]))  # refused inside vmap: the model is traced outside
    score = jax.nn.sigmoid(features["x"] @ kernel)
    called = (score > 0.5).astype(jnp.int32)
    weight = features["weight"]
    found = {
        "accuracy": metrics.accuracy(labels, called),
        "weighted": metrics.accuracy(labels, called, weight),
        "brier": metrics.mean((score - labels) ** 2, weight),
        "scores": metrics.on_host(lambda scores: np.median(scores), scores=score),
        "counts": metrics.on_host(lambda called: np.bincount(called, minlength=2), called=called),
    }
    loss = jnp.mean((score - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0), eval_metric_ops=found)


def evaluate(directory, batch_size, how="divides itself", **options):
    """Returns the results of an evaluation. `how` selects how the input is divided over several processes."""
    features, labels = data()

    def input_fn(input_context):
        own = slice(input_context.input_pipeline_id, None, input_context.num_input_pipelines)
        for start in range(0, len(labels[own]), batch_size):
            rows = slice(start, start + batch_size)
            yield {name: value[own][rows] for name, value in features.items()}, labels[own][rows]

    config = ec.RunConfig(tf_random_seed=1, allow_untrained=True, mesh={"data": -1})
    estimator = ec.Estimator(model_fn, directory, config)
    hook = SliceHook(["sex", ("pclass", "embarked")], **options)
    whole = ec.inputs.from_iterable(lambda: input_fn(ec.inputs.InputContext()), whole=True, ragged="pad")
    dealt = ec.inputs.numpy_input_fn(features, labels, batch_size=batch_size, shuffle=False)
    ways = {"divides itself": lambda input_context: input_fn(input_context), "whole": whole, "dealt out": dealt}
    return estimator.evaluate(ways[how], hooks=[hook])


if __name__ == "__main__":
    if len(sys.argv) > 3:
        address, index, count = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
        jax.distributed.initialize(address, num_processes=count, process_id=index)
    found = evaluate(sys.argv[1], int(sys.argv[2]), *sys.argv[6:])
    print(json.dumps({"devices": jax.device_count(), "rows": found["slices"]}))
