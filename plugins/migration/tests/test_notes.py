"""Tests of the notes of the table: each call in a note fits the function that it names."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core import metrics
from estimator_migration import check, find, rewrite, table

PACKAGES = {"ec": "estimator_core", "jnp": "jax.numpy", "nnx": "flax.nnx"}
CALL = re.compile(r"(?<![\w.])((?:ec|optax|jnp|nnx|jax|estimator_\w+)(?:\.\w+)+)\(((?:[^()]|\([^()]*\))*)\)")


def _calls() -> Iterator[tuple[str, str, ast.Call]]:
    for row in table().values():
        for name, arguments in CALL.findall(row.how):
            complete = re.sub(r"=(?=,|$)", "=None", arguments)  # `rank(x, axis=)` names an argument
            call = ast.parse(f"f({complete})", mode="eval").body
            assert isinstance(call, ast.Call)
            yield row.name, name, call


def _named(path: str) -> Any:
    first, *rest = path.split(".")
    found: Any = importlib.import_module(PACKAGES.get(first, first))
    for part in rest:
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


def _misfit(function: Any, call: ast.Call) -> str:
    """Returns what is wrong with a call, or "". After `...`, a call may leave out arguments."""
    parameters = inspect.signature(function).parameters
    places = [name for name, found in parameters.items() if found.kind is not found.KEYWORD_ONLY]
    for position, value in enumerate(call.args):
        if isinstance(value, ast.Name) and value.id in parameters and places[position : position + 1] != [value.id]:
            return f"{value.id} is at position {position}"
    if any(isinstance(value, ast.Constant) and value.value is ... for value in call.args):
        return ""
    try:
        inspect.signature(function).bind(*call.args, **{str(given.arg): given.value for given in call.keywords})
    except TypeError as error:
        return str(error)
    return ""


@pytest.mark.plugins
@pytest.mark.libraries
def test_each_call_in_a_note_fits_the_function() -> None:
    """A note once named `dense_features(features, columns)`, whose arguments have the other order."""
    misfits = {(row, name): _misfit(_named(name), call) for row, name, call in _calls()}
    assert len(misfits) > 100
    assert {place: misfit for place, misfit in misfits.items() if misfit} == {}


def test_the_count_in_the_note_of_false_positives_is_a_metric() -> None:
    """The note once named a function whose result `evaluate` refuses."""
    note = table()["tf.metrics.false_positives"].how
    assert "ec.metrics.on_host(lambda hit: hit.sum(), hit=positive & predicted)" in note
    hits = [ec.metrics.on_host(lambda hit: hit.sum(), hit=part) for part in (np.array([1, 1, 0]), np.array([1]))]
    assert metrics.merge_metrics({"fp": hits[0]}, {"fp": hits[1]})["fp"].compute() == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("losses.log_loss", 2.9113748),
        ("losses.mean_pairwise_squared_error", 0.8733333),
        ("metrics.mean_cosine_distance", 0.050000012),
        ("metrics.mean_relative_error", 0.23333335),
    ],
)
def test_the_formula_of_a_note_has_the_value_of_tensorflow(name: str, value: float) -> None:
    """The values are those of tensorflow-cpu 2.15.1. The relative error was once NaN where the normalizer is 0, the
    distance was that of vectors of length 1, and the losses had no formula.
    """
    formula = re.match(r"(?:[^.]|\.(?! |$))*?\)(?=\. | with y| for|\.$)", table()[f"tf.{name}"].how)
    assert formula is not None
    labels, predictions = jnp.array([[1.0, 0, 1], [0, 0, 1]]), jnp.array([[0.9, 0.1, 0.0], [0.2, 0.6, 1.0]])
    names = {"labels": labels, "predictions": predictions, "y": labels, "p": predictions, "dim": 1}
    normalizer = jnp.array([[1.0, 0, 1], [2, 3, 0]])
    found = eval(formula[0], {**names, "ec": ec, "jnp": jnp, "normalizer": normalizer})
    assert float(found.compute() if hasattr(found, "compute") else found) == pytest.approx(value, rel=1e-6)


def test_the_notes_about_variables_share_and_select_them() -> None:
    """The note of a scope once named an argument reuse= of `ec.get_variable`, which does not exist."""
    old = "import tensorflow.compat.v1 as tf\nwith tf.variable_scope(name_or_scope='a', reuse=True):\n    pass\n"
    assert "ec.variable_scope(name='a')" in rewrite(old).source
    assert "ec.get_variable(v.name, v.shape)" in table()["tf.trainable_variables"].how
    values: list[Any] = []

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        def dense(x: Any) -> jax.Array:
            with ec.variable_scope("a"):
                return x @ ec.get_variable("w", (1, 1), jax.nn.initializers.ones)

        y = dense(dense(features))
        values.append([(v.name, ec.get_variable(v.name, v.shape).shape) for v in ec.trainable_variables()])
        return ec.EstimatorSpec(mode, predictions=y, loss=jnp.sum(y), train_op=optax.sgd(0.1))

    ec.Estimator(model_fn).train(lambda: [(np.ones((2, 1), np.float32), np.ones(2, np.float32))], steps=1)
    assert values[0] == [("a/w", (1, 1))]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("contrib.feature_column.sequence_numeric_column", "estimator_canned_tabular.sequence_numeric_column"),
        ("contrib.feature_column.sequence_input_layer", "estimator_canned_tabular.sequence_features"),
        ("keras.experimental.SequenceFeatures", "estimator_canned_tabular.sequence_features"),
        ("contrib.learn.utils.saved_model_export_utils.make_export_strategy", "estimator_exporters.LatestExporter"),
    ],
)
def test_names_that_were_without_a_successor_have_one(name: str, place: str) -> None:
    row = find(f"tensorflow.{name}")
    assert row is not None
    assert row.place == place


@pytest.mark.parametrize("alternatives", [", {'a': f}", ", receiver_tensors_alternatives={'a': f}"])
def test_alternative_inputs_of_a_receiver_have_a_note(alternatives: str) -> None:
    """They were taken for the same, but no signature of the export accepts them."""
    old = "import tensorflow as tf\nr = tf.estimator.export.ServingInputReceiver(f, t{})\n"
    assert rewrite(old.format("")).source == "import estimator_core as ec\nr = ec.export.ServingInputReceiver(f, t)\n"
    _, use = check(old.format(alternatives))
    assert (use.row.verdict, "receiver_tensors_alternatives=" in use.row.how) == ("rewrite by hand", True)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("train.inverse_time_decay", 0.074074075),
        ("train.natural_exp_decay", 0.070468806),
        ("nn.weighted_cross_entropy_with_logits", [0.31326175, 1.1085231, 0.380784]),
        ("nn.log_poisson_loss", [0.36787945, 1.4987212, 5.389056]),
    ],
)
def test_the_expression_after_a_colon_has_the_value_of_tensorflow(name: str, values: Any) -> None:
    """The values are those of tensorflow-cpu 2.15.1. The decay was once that of an inverse time for every name."""
    expression = re.search(r": (lambda .*?|.*?)\.(?: With|$)", table()[f"tf.{name}"].how)
    assert expression is not None
    names = {"rate": 0.1, "decay": 0.5, "steps": 10, "pos_weight": 3.0, "jax": jax, "jnp": jnp}
    arrays = {"x": jnp.array([-1.0, 0.5, 2.0]), "y": jnp.array([0.0, 0.3, 1.0])}
    found = eval(expression[1], {**names, **arrays})
    np.testing.assert_allclose(found(7) if callable(found) else found, values, rtol=1e-6)


def test_the_note_of_sgd_has_the_momentum_of_keras_under_a_schedule() -> None:
    """Momentum with a changing rate had no successor. Keras computes v = m * v - r * g, and moves by v, or by
    m * v - r * g with Nesterov's momentum.
    """
    chain = "optax.chain(optax.scale_by_learning_rate(schedule), optax.trace(momentum, nesterov))"
    assert chain in table()["tf.keras.optimizers.legacy.SGD"].how
    rates, momentum, gradients = [0.1, 0.05, 0.05], 0.9, [1.0, -2.0, 0.5]
    for nesterov in (False, True):
        schedule = optax.piecewise_constant_schedule(0.1, {1: 0.5})
        optimizer = optax.chain(optax.scale_by_learning_rate(schedule), optax.trace(momentum, nesterov))
        state, velocity = optimizer.init(jnp.zeros(())), 0.0
        for rate, gradient in zip(rates, gradients, strict=True):
            velocity = momentum * velocity - rate * gradient
            update, state = optimizer.update(jnp.asarray(gradient), state)
            expected = momentum * velocity - rate * gradient if nesterov else velocity
            np.testing.assert_allclose(update, expected, rtol=1e-5)


def test_partitioners_of_canned_estimators_are_left_out() -> None:
    """They raised a TypeError in the rewritten program."""
    old = "import tensorflow as tf\ne = tf.estimator.DNNClassifier([4], [], input_layer_partitioner=None)\n"
    assert "e = estimator_canned_tabular.DNNClassifier([4], [])\n" in rewrite(old).source
