"""Tests of rewritten calls: they have the arguments of the successor, and compute the same values as TensorFlow."""

import ast
import importlib
import inspect
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
    "tf.contrib.layers.xavier_initializer(seed=1)": "jax.nn.initializers.glorot_uniform()",
    "tf.nn.elu(x, 'n')": "jax.nn.elu(x)",
    "tf.sigmoid(x, 'n')": "jax.nn.sigmoid(x)",
    "tf.estimator.TrainSpec(f, 100, [h])": "ec.TrainSpec(f, 100, hooks=[h])",
    "tf.estimator.EvalSpec(f, 10, 'n', [h], e, 0, 1)": (
        "ec.EvalSpec(f, steps=10, name='n', hooks=[h], exporters=e, start_delay_secs=0, throttle_secs=1)"
    ),
    "tf.estimator.EstimatorSpec(m, p, l, o)": "ec.EstimatorSpec(m, predictions=p, loss=l, train_op=o)",
    "tf.summary.scalar(name='l', tensor=x)": "ec.summary.scalar(name='l', value=x)",
    "tf.summary.scalar('l', x, ['c'], 'f')": "ec.summary.scalar('l', x)",
    "tf.summary.image('i', tensor=x, max_outputs=7)": "ec.summary.image('i', images=x, max_outputs=7)",
    "tf.get_variable('w', [4], 'float32', i, None, False)": (
        "ec.get_variable('w', [4], dtype='float32', initializer=i, regularizer=None, trainable=False)"
    ),
    "tf.estimator.inputs.numpy_input_fn(x, y, 2, 1, False, 1000, 1)": "ec.inputs.numpy_input_fn(x, y, 2, 1, False)",
    "tf.estimator.inputs.pandas_input_fn(x, y, num_threads=1)": "ec.inputs.pandas_input_fn(x, y)",
    "tf.estimator.Estimator(m).export_saved_model(d, f, None, False, c)": (
        "ec.Estimator(m).export_saved_model(d, f, None, checkpoint_path=c)"
    ),
    "tf.data.experimental.make_csv_dataset('d', 32, ['a'], sloppy=True)": (
        "estimator_inputs.csv_input_fn('d', 32, column_names=['a'], shuffle=True, num_epochs=None)"
    ),
    "tf.data.experimental.make_csv_dataset('d', 32, shuffle=False, num_epochs=1, shuffle_seed=3)": (
        "estimator_inputs.csv_input_fn('d', 32, shuffle=False, num_epochs=1, seed=3)"
    ),
    "tf.metrics.sensitivity_at_specificity(y, p, 0.5, num_thresholds=9)": (
        'estimator_heads.metrics.sensitivity_at_specificity(y, p, 0.5, thresholds=9, choose="nearest")'
    ),
    "tf.metrics.auc(y, p, w, 9, None, None, 'PR', 'n', 'careful_interpolation')": (
        "estimator_heads.metrics.auc(y, p, w, thresholds=9, curve='PR')"
    ),
    "tf.metrics.auc(y, p, num_thresholds=9, thresholds=[0.5])": (
        "estimator_heads.metrics.auc(y, p, num_thresholds=9, thresholds=[0.5])"
    ),
    "tf.metrics.recall_at_k(y, p, 3, None, w)": (
        "estimator_heads.metrics.recall_at_k(y, p, 3, class_id=None, weights=w)"
    ),
    "tf.estimator.RunConfig('d', 1, 5, 60)": (
        "ec.RunConfig('d', tf_random_seed=1, save_summary_steps=5, save_checkpoints_steps=60)"
    ),
    "tf.train.CheckpointSaverHook('d', None, 5, s)": (
        "estimator_hooks.CheckpointSaverHook(save_secs=None, save_steps=5)"
    ),
    "tf.train.ProfilerHook(10, None, 'd', True, False)": (
        "estimator_hooks.ProfilerHook(10, None, 'd', show_memory=False)"
    ),
    "tf.estimator.LatestExporter('n', f, None, False, 3)": (
        "estimator_exporters.LatestExporter('n', f, None, exports_to_keep=3)"
    ),
    "tf.estimator.BestExporter('n', f, None, c, None, False, 3)": (
        "estimator_exporters.BestExporter('n', f, None, c, None, exports_to_keep=3)"
    ),
    "tf.feature_column.shared_embeddings(c, 3, 'sum', None, 'n', None, None, None, True, True)": (
        "estimator_canned_tabular.shared_embeddings(c, 3, 'sum', None, 'n', None, None, None, True)"
    ),
    "tf.train.latest_checkpoint(checkpoint_dir='d')": "ec.latest_checkpoint(model_dir='d')",
    "tf.train.list_variables(ckpt_dir_or_file='d')": "estimator_core.checkpoint.list_variables(path='d')",
    "tf.summary.text(name='l', tensor='t')": "ec.summary.text(name='l', value='t')",
    "tf.feature_column.embedding_column(c, 3, use_safe_embedding_lookup=False)": (
        "estimator_canned_tabular.embedding_column(c, 3)"
    ),
    "tf.app.run()": "absl.app.run(main=main)",
    "tf.losses.Reduction.SUM": "estimator_heads.Reduction.SUM",
    "tf.losses.Reduction.MEAN": "tf.losses.Reduction.MEAN",
    "tf.keras.losses.Reduction.SUM": "estimator_heads.Reduction.SUM",
    "tf.keras.losses.Reduction.NONE": "tf.keras.losses.Reduction.NONE",
    "tf.contrib.estimator.regression_head('w', 2)": (
        "estimator_heads.RegressionHead(weight_column='w', label_dimension=2)"
    ),
}


#: Calls of a method, and calls whose note says what to write.
NOT_BOUND = (
    "ec.Estimator(m).export_saved_model",
    "glorot_uniform(uniform=False)",
    "regularizer=",
    "class_id=",
    "num_thresholds=",
)


def named(name: str) -> Any:
    """Returns the function with a dotted name in a rewritten program."""
    long = {"ec": "estimator_core", "jnp": "jax.numpy"}
    first, _, rest = name.partition(".")
    found = importlib.import_module(long.get(first, first))
    for part in rest.split("."):
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


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


@pytest.mark.plugins
@pytest.mark.parametrize("call", [call for call, done in CALLS.items() if not any(each in done for each in NOT_BOUND)])
def test_the_successor_takes_the_arguments(call: str) -> None:
    done = ast.parse(CALLS[call], mode="eval").body
    if not isinstance(done, ast.Call) or any(isinstance(argument, ast.Starred) for argument in done.args):
        return
    function = named(ast.unparse(done.func))
    inspect.signature(function).bind(*done.args, **{str(word.arg): word.value for word in done.keywords})


@pytest.mark.parametrize("average", ["", ", average='macro'"])
def test_scores_of_classes_are_averaged_as_there(average: str) -> None:
    call = f"tf_metrics.f1(y, p, 5, [1, 2]{average})"
    done = "average='macro'" if average else 'average="micro"'
    expected = f"z = estimator_heads.metrics.f_beta(y, p, 5, indices=[1, 2], {done})"
    assert last_line(f"import tf_metrics\nz = {call}\n") == expected


def test_a_name_for_two_functions_keeps_its_arguments() -> None:
    chosen = "one = tf.train.AdamOptimizer\nif slow:\n    one = tf.train.AdadeltaOptimizer\n"
    assert last_line(f"{IMPORT}{chosen}z = one(r)\n") == "z = one(r)"


def test_an_argument_on_the_last_of_several_lines() -> None:
    call = "z = tf.train.AdamOptimizer(\n    r,\n    beta1=0.8,  # slow\n)\n"
    assert rewrite(IMPORT + call).source.endswith("adam(\n    r,\n    b1=0.8, epsilon=1e-8,  # slow\n)\n")


#: Weights after 20 steps, and values, computed by TensorFlow 2.15.1 (`tensorflow.compat.v1`, gelu of `tensorflow`).
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
    """Returns the result of a rewritten call."""
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
