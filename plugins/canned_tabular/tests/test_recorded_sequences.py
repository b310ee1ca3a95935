"""50 steps of recurrent models equal those of TensorFlow's estimators, within 1e-4."""

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from plugins.canned_tabular.tests import sequence_cases, table_cases, table_recordings
from plugins.canned_tabular.tests.given_weights import QUIET, checkpoint_of
from plugins.canned_tabular.tests.test_recorded_tables import arguments_of

CASES = sequence_cases.cases()
QUICK = {"row_0"}
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]


def batch(case):
    values = sequence_cases.table()
    features = {
        "pages": sequence_cases.dense(values["sequences"]["pages"], -1).astype(np.int64),
        "tokens": sequence_cases.dense(values["sequences"]["tokens"], ""),
        "numbers": np.array(values["sequences"]["numbers"], object),
        **values["features"],
    }
    used = {"age"} | set(str(case["arguments"]).split("'")) & set(features)
    return {name: array for name, array in features.items() if name in used}, values[case["labels"]]


def whole(specs):
    """The specifications with sequences of the table's length. Rows of numbers are lists."""
    if isinstance(specs, list):
        return [whole(spec) for spec in specs]
    if not isinstance(specs, dict):
        return specs
    more = (
        {"max_values": sequence_cases.STEPS_OF_SEQUENCE} if specs.get("function") == "sequence_numeric_column" else {}
    )
    return {name: whole(value) for name, value in specs.items()} | more


def trained(name, tmp_path, **more):
    """The estimator of a case after its steps, from the weights of the recording, and what is recorded."""
    case, expected = whole(CASES[name]), table_recordings.load("sequences")[name]
    weights = {sequence_cases.same_name(key): (key, value) for key, value in expected["weights"].items()}
    initial = {here: table_cases.initial_value(key, np.shape(value)) for here, (key, value) in weights.items()}
    config = ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1, **QUIET)
    make = getattr(tab, case["estimator"])
    start = checkpoint_of(initial, tmp_path / "given")
    estimator = make(config=config, warm_start_from=start, **{**arguments_of(case, tmp_path), **more})
    estimator.train(lambda: [batch(case)] * table_cases.STEPS)
    return case, estimator, expected, weights


@pytest.mark.slow
def test_by_default_a_step_without_a_category_moves_nothing(tmp_path):
    _, estimator, expected, _ = trained("row_0", tmp_path)
    (table,) = [name for name in expected["weights"] if "embedding_weights" in name]
    given = table_cases.initial_value(table, np.shape(expected["weights"][table]))
    np.testing.assert_array_equal(estimator.variables[table][0], given[0])
    assert np.abs(expected["weights"][table][0] - given[0]).max() > 1e-2


@pytest.mark.parametrize("name", NAMES)
def test_as_recorded(name, tmp_path):
    more = {"row_sparse": "as_tf"} if name == "row_0" else {}
    case, estimator, expected, weights = trained(name, tmp_path, **more)
    found = estimator.variables
    assert sorted(found.keys() - {"data_contract"}) == sorted(weights)  # facts about the data, not weights
    for variable, (_, value) in weights.items():
        np.testing.assert_allclose(found[variable], value, rtol=1e-4, atol=1e-4, err_msg=variable)
    metrics = estimator.evaluate(lambda: [batch(case)])
    for metric, value in expected["metrics"].items():
        assert metrics[metric] == pytest.approx(value, rel=1e-4, abs=1e-4), metric
    rows = list(estimator.predict(lambda: [batch(case)]))[:8]
    for key in {"logits", "predictions", "probabilities", "sequence_mask"} & expected["predictions"].keys():
        predicted = np.array([row[key] for row in rows], float)
        np.testing.assert_allclose(predicted, expected["predictions"][key], rtol=1e-4, atol=1e-4, err_msg=key)
