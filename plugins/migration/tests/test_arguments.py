"""Calls after `migrate rewrite`: they have the arguments of the successor, and compute what TensorFlow computed."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from estimator_migration import rewrite

IMPORT = "import tensorflow.compat.v1 as tf\n"

CALLS = {
    "tf.train.AdamOptimizer(r)": "estimator_heads.adam(r, epsilon=1e-8)",
    "tf.train.AdamOptimizer()": "estimator_heads.adam(epsilon=1e-8)",
    "tf.train.AdamOptimizer(*a)": "estimator_heads.adam(*a)",
    "tf.train.AdamOptimizer(r, 0.8, 0.9, 1e-6, False, 'n')": "estimator_heads.adam(r, b1=0.8, b2=0.9, epsilon=1e-6)",
    "tf.train.AdagradOptimizer(r, 0.2)": "estimator_heads.adagrad(r, initial_accumulator_value=0.2, epsilon=0.0)",
    "tf.train.AdadeltaOptimizer()": "optax.adadelta(learning_rate=0.001, rho=0.95, eps=1e-8)",
    "tf.train.AdadeltaOptimizer(r, 0.9)": "optax.adadelta(r, 0.9, eps=1e-8)",
    "tf.train.GradientDescentOptimizer(r, False)": "optax.sgd(r)",
    "tf.train.MomentumOptimizer(r, 0.9, False, 'n', True)": "optax.sgd(r, 0.9, nesterov=True)",
    "tf.train.RMSPropOptimizer(r, 0.9, 0.5, 1e-6)": "optax.rmsprop(r, 0.9, momentum=0.5, eps=1e-6, initial_scale=1.0)",
    "tf.nn.leaky_relu(x)": "jax.nn.leaky_relu(x, negative_slope=0.2)",
    "tf.nn.leaky_relu(x, 0.3)": "jax.nn.leaky_relu(x, negative_slope=0.3)",
    "tf.nn.leaky_relu(features=x, alpha=0.3)": "jax.nn.leaky_relu(x=x, negative_slope=0.3)",
    "tf.nn.gelu(x)": "jax.nn.gelu(x, approximate=False)",
    "tf.nn.softmax(x, dim=1)": "jax.nn.softmax(x, axis=1)",
    "tf.nn.softmax_cross_entropy_with_logits(y, x)": "optax.softmax_cross_entropy(labels=y, logits=x)",
    "tf.reduce_sum(x, 1, True)": "jnp.sum(x, 1, keepdims=True)",
    "tf.contrib.layers.xavier_initializer(False)": "jax.nn.initializers.glorot_uniform(uniform=False)",
    "tf.contrib.estimator.regression_head('w', 2)": (
        "estimator_heads.RegressionHead(weight_column='w', label_dimension=2)"
    ),
}


def last_line(source: str) -> str:
    return rewrite(source).source.splitlines()[-1]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_has_the_arguments_of_the_successor(call: str) -> None:
    assert last_line(f"{IMPORT}z = {call}\n") == f"z = {CALLS[call]}"


@pytest.mark.parametrize(
    "name",
    ["from tensorflow.train import AdamOptimizer as Adam", "import tensorflow as tf\nAdam = tf.train.AdamOptimizer"],
)
def test_a_function_with_a_name_of_its_own(name: str) -> None:
    assert last_line(f"{name}\nz = Adam(r, beta1=0.8)\n") == "z = Adam(r, b1=0.8, epsilon=1e-8)"


def test_a_name_for_two_functions_keeps_its_arguments() -> None:
    chosen = "one = tf.train.AdamOptimizer\nif slow:\n    one = tf.train.AdadeltaOptimizer\n"
    assert last_line(f"{IMPORT}{chosen}z = one(r)\n") == "z = one(r)"


def test_an_argument_on_the_last_of_several_lines() -> None:
    call = "z = tf.train.AdamOptimizer(\n    r,\n    beta1=0.8,  # slow\n)\n"
    assert rewrite(IMPORT + call).source.endswith("adam(\n    r,\n    b1=0.8, epsilon=1e-8,  # slow\n)\n")


#: Weights after 20 steps, and values: computed by TensorFlow 2.15.1 (`tensorflow.compat.v1`, gelu of `tensorflow`).
TRAINED = {
    "tf.train.AdamOptimizer(0.1)": [-0.2711542, -0.2224544, 0.0039711],
    "tf.train.AdagradOptimizer(0.1)": [0.3787261, -1.3531113, 0.0002962],
    "tf.train.AdadeltaOptimizer(0.5)": [0.9953200, -1.9953156, 0.0002941],
    "tf.train.RMSPropOptimizer(0.1)": [0.0057935, -1.0455762, 0.0002978],
    "tf.train.RMSPropOptimizer(0.1, 0.9, 0.5, 1e-6)": [-0.0007981, -0.5175760, 0.0002960],
    "tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)": [-0.0394974, 0.4294147, 0.0002923],
    "tf.train.FtrlOptimizer(0.1, -0.5, 0.2, 0.01)": [0.2316449, -0.2419704, 0.0],
}
VALUES = {
    "tf.nn.leaky_relu(x)": [-0.2, 0.5, 2.0],
    "tf.nn.gelu(x)": [-0.1586553, 0.3457312, 1.9544997],
    "tf.nn.softmax_cross_entropy_with_logits(shares, scores)": 0.5132617,
}


def result(call: str) -> Any:
    """What a rewritten call returns."""
    arrays = {"x": [-1.0, 0.5, 2.0], "shares": [0.2, 0.8], "scores": [1.0, 2.0]}
    names: dict[str, Any] = {name: jnp.array(values) for name, values in arrays.items()}
    exec(rewrite(f"import tensorflow as tf\nz = {call}\n").source, names)
    return names["z"]


@pytest.mark.plugins
@pytest.mark.parametrize("call", TRAINED)
def test_an_optimizer_trains_as_there(call: str) -> None:
    optimizer = result(call)
    weights = jnp.array([1.0, -2.0, 3e-4])
    state = optimizer.init(weights)
    for _ in range(20):
        gradients = 2.0 * weights * jnp.array([1.0, 0.1, 1e-3])
        updates, state = optimizer.update(gradients, state, weights)
        weights = weights + updates
    np.testing.assert_allclose(weights, TRAINED[call], atol=2e-5)


@pytest.mark.plugins
@pytest.mark.parametrize("call", VALUES)
def test_a_function_computes_what_it_did_there(call: str) -> None:
    np.testing.assert_allclose(result(call), VALUES[call], rtol=1e-6)
