"""50 steps of every estimator, optimizer and kind of column equal those of TensorFlow's estimators, within 1e-4."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
import estimator_heads
from plugins.canned_tabular.tests import table_cases, table_recordings
from plugins.canned_tabular.tests.given_weights import QUIET, checkpoint_of

CASES = table_cases.cases()
#: Quick cases that reach every column kind. The others are slow, because each compiles its own model.
QUICK = {
    "DNNRegressor-Adagrad",
    "BaselineRegressor-Ftrl",
    "linear-crossed_key",
}
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]


def chosen(spec):
    """An optimizer of a case, and whether its tables are updated row by row as in the original."""
    return tab.choose_optimizer(spec["optimizer"], spec["rate"])


def arguments_of(case, folder):
    made, sparse = {}, None
    for name, value in case["arguments"].items():
        if name.endswith("feature_columns"):
            value = table_cases.build_columns(value, tab, folder, own=True)
        elif name.endswith("optimizer"):
            sparse = chosen(value).row_sparse
            value = chosen(value).transformation
        elif name == "head":
            value = getattr(estimator_heads, value)()
        elif name == "activation_fn":
            import jax.numpy as jnp

            value = getattr(jnp, value)
        made[name] = value
    return made if sparse is None or case["estimator"].startswith("Baseline") else {**made, "row_sparse": sparse}


def initial_values(weights):
    """The initial values of the recorded model."""
    made = {}
    for name, value in weights.items():
        shape = np.shape(value)
        made[name] = table_cases.initial_value(name, shape)
        if name.endswith(("moving_mean", "moving_variance")):
            made[name] = np.zeros(shape, np.float32) if name.endswith("mean") else np.ones(shape, np.float32)
        if name.startswith("baseline/"):
            made[name] = np.zeros(shape, np.float32)
    return made


def batches(case, *, repeat):
    values = table_cases.table()
    labels = table_cases.labels_of(case, values)
    size = table_cases.BATCH
    made = [
        ({key: array[at : at + size] for key, array in values["features"].items()}, labels[at : at + size])
        for at in range(0, table_cases.ROWS, size)
    ]
    return lambda: [made[step % len(made)] for step in range(table_cases.STEPS)] if repeat else made


@pytest.mark.parametrize("name", NAMES)
def test_as_recorded(name, tmp_path):
    case, expected = CASES[name], table_recordings.load("tables")[name]
    table_cases.write_files(tmp_path)
    config = ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1, **QUIET)
    more = {}
    if not case["estimator"].startswith("Baseline"):
        more["warm_start_from"] = checkpoint_of(initial_values(expected["weights"]), tmp_path / "given")
    estimator = getattr(tab, case["estimator"])(config=config, **arguments_of(case, tmp_path), **more)
    estimator.train(batches(case, repeat=True))
    found = estimator.variables
    assert sorted(found.keys() - {"data_contract"}) == sorted(expected["weights"])  # facts about the data, not weights
    for variable, value in expected["weights"].items():
        np.testing.assert_allclose(found[variable], value, rtol=1e-4, atol=1e-4, err_msg=variable)
    metrics = estimator.evaluate(batches(case, repeat=False))
    assert metrics.keys() == expected["metrics"].keys()
    for metric, value in expected["metrics"].items():
        assert metrics[metric] == pytest.approx(value, rel=1e-4, abs=1e-4), metric
    rows = list(estimator.predict(batches(case, repeat=False)))[:8]
    for key, values in expected["predictions"].items():
        predicted = np.array([row[key] for row in rows])
        if predicted.dtype.kind in "US":
            assert predicted.tolist() == values
        else:
            np.testing.assert_allclose(predicted, values, rtol=1e-4, atol=1e-4, err_msg=key)
