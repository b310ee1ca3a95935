"""Random models with empty rows, unknown words and stateful optimizers equal TensorFlow's estimators, within 1e-4."""

import numpy as np
import optax
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_heads import ftrl
from plugins.canned_tabular.tests import random_cases, table_cases, table_recordings
from plugins.canned_tabular.tests.given_weights import QUIET, checkpoint_of

CASES = random_cases.cases()
#: The quick cases: a linear model, a deep one and both, with three optimizers. Each model is compiled separately.
QUICK = {0}
NAMES = [pytest.param(name, marks=() if random_cases.seed_of(name) in QUICK else pytest.mark.slow) for name in CASES]


def optimizer(kind, rate, momentum=0.0, shrinkage=0.0):
    return {
        "Momentum": lambda: optax.sgd(rate, momentum),
        "Nesterov": lambda: optax.sgd(rate, momentum, nesterov=True),
        "Ftrl": lambda: ftrl(rate, l2_shrinkage_regularization_strength=shrinkage),
        "RMSProp": lambda: optax.rmsprop(rate, decay=0.9, eps=1e-7, momentum=momentum),
        "Adagrad": lambda: tab.choose_optimizer("Adagrad", rate).transformation,
    }[kind]()


def batches(seed, steps):
    features, labels = random_cases.table(seed)
    size = random_cases.BATCH
    made = [
        ({key: array[at : at + size] for key, array in features.items()}, labels[at : at + size])
        for at in range(0, random_cases.ROWS, size)
    ]
    return lambda: [made[step % len(made)] for step in range(steps)]


def trained(name, tmp_path, row_sparse):
    """The estimator of a case after its steps, from the weights of the recording."""
    case, expected = CASES[name], table_recordings.load("random_tables")[name]
    given = {one: table_cases.initial_value(one, np.shape(value)) for one, value in expected["weights"].items()}
    # The default is for dense features. Features from tf.Examples are the other kind.
    crosses = {"dense_strings": False} if case["parsed"] else {}
    made = {key: random_cases.build(specs, tab, **crosses) for key, specs in case["columns"].items()}
    keys = ("linear_optimizer", "dnn_optimizer") if "dnn_hidden_units" in case["options"] else ("optimizer",)
    made |= {key: optimizer(**case["optimizer"]) for key in keys}
    estimator = getattr(tab, case["estimator"])(
        config=ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1, **QUIET),
        warm_start_from=checkpoint_of(given, tmp_path / "given"),
        row_sparse=row_sparse,
        **case["options"],
        **made,
    )
    return estimator.train(batches(random_cases.seed_of(name), random_cases.STEPS)), expected


def test_by_default_a_row_without_a_category_moves_nothing(tmp_path):
    name = next(iter(CASES))
    estimator, expected = trained(name, tmp_path, None)
    weights = estimator.variables["linear/linear_model/words/weights"]
    assert np.abs(weights - expected["weights"]["linear/linear_model/words/weights"]).max() > 1e-3


def test_another_word_for_the_switch_is_refused():
    with pytest.raises(ec.EstimatorError, match='True, False, "as_tf" or None'):
        tab.choose_optimizer("SGD", None, "tf")


@pytest.mark.parametrize("name", ["Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"])
def test_the_rate_of_a_name_may_be_a_schedule(name):
    """The annotation allowed only a number."""
    schedule = tab.choose_optimizer(name, optax.piecewise_constant_schedule(0.1, {1: 0.5})).transformation
    constant = tab.choose_optimizer(name, 0.1).transformation
    weights, gradients = np.ones(2, np.float32), np.array([0.5, -2.0], np.float32)
    states = [one.init(weights) for one in (schedule, constant)]
    (first, after), (expected, alike) = (
        one.update(gradients, state, weights) for one, state in zip((schedule, constant), states, strict=True)
    )
    np.testing.assert_allclose(first, expected, rtol=1e-6)
    second, other = schedule.update(gradients, after, weights)[0], constant.update(gradients, alike, weights)[0]
    assert np.abs(second - other).min() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_as_recorded(name, tmp_path):
    estimator, expected = trained(name, tmp_path, "as_tf")
    for variable, value in expected["weights"].items():
        np.testing.assert_allclose(estimator.variables[variable], value, rtol=1e-4, atol=1e-4, err_msg=variable)
    metrics = estimator.evaluate(batches(random_cases.seed_of(name), random_cases.ROWS // random_cases.BATCH))
    for metric, value in expected["metrics"].items():
        assert metrics[metric] == pytest.approx(value, rel=1e-4, abs=1e-4), metric
