"""Tests of tables with many rows: a step changes only the rows of its batch, on one device and on eight."""

import json
import pathlib

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_canned_tabular.models.deep import INPUT_SCOPE
from estimator_core.testing import run_with_devices
from plugins.canned_tabular.tests.given_weights import QUIET

PROGRAM = pathlib.Path(__file__).with_name("train_sharded.py").read_text()


def trained(devices, folder):
    found = json.loads(run_with_devices(devices, PROGRAM, str(folder)).splitlines()[-1])
    assert found["devices"] == devices
    return found["weights"]


@pytest.mark.slow
def test_split_over_devices_it_learns_the_same(tmp_path):
    one, eight = (trained(devices, tmp_path / str(devices)) for devices in (1, 8))
    assert one.keys() == eight.keys()
    for name, value in one.items():
        np.testing.assert_allclose(eight[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def weights_after(optimizer, tmp_path, **options):
    column = tab.categorical_column_with_identity("id", 1000)
    estimator = tab.DNNClassifier(
        [4],
        [tab.embedding_column(column, 2)],
        optimizer=optimizer,
        activation_fn=jnp.tanh,
        config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1, **QUIET),
        **options,
    )
    table = "dnn/input_from_feature_columns/input_layer/id_embedding/embedding_weights"
    batches = [({"id": np.array([[step], [step + 1]])}, np.array([[0], [1]])) for step in range(4)]
    first = estimator.train(lambda: batches[:1]).variables[table]
    return first, estimator.train(lambda: batches[2:]).variables[table]


@pytest.mark.parametrize(
    ("optimizer", "options", "still"),
    [("Adagrad", {}, True), ("Adam", {}, False), ("Adam", {"row_sparse": True}, True)],
)
def test_rows_that_no_batch_touches(tmp_path, optimizer, options, still):
    """Row 0 is looked up only in the first step. Only Adam's moments change it afterwards, as in the original."""
    first, last = weights_after(optimizer, tmp_path, **options)
    assert first[5:].tobytes() == last[5:].tobytes()
    assert (first[0].tobytes() == last[0].tobytes()) == still
    assert (first[3] != last[3]).any()


def test_each_half_of_a_model_has_its_own_rows(tmp_path):
    """In a wide and deep model of TensorFlow, Adam updates all rows of the deep half, and Ftrl those of the batch."""
    column = tab.categorical_column_with_identity("id", 10)
    estimator = tab.DNNLinearCombinedClassifier(
        linear_feature_columns=[column],
        linear_optimizer=tab.choose_optimizer(optax.sgd(0.1, 0.9), None, "as_tf"),
        dnn_feature_columns=[tab.embedding_column(column, 2)],
        dnn_optimizer=lambda: tab.choose_optimizer("Adam", 0.01),
        dnn_hidden_units=[4],
        dnn_activation_fn=jnp.tanh,
        config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1, **QUIET),
    )
    batches = [({"id": np.array([[row], [row + 1]])}, np.array([[0], [1]])) for row in (1, 3)]
    batches.append(({"id": np.array([[5], [-1]])}, np.array([[0], [1]])))
    after = [dict(estimator.train(lambda batch=batch: [batch]).variables) for batch in batches]
    wide, deep = "linear/linear_model/id/weights", f"{INPUT_SCOPE}/id_embedding/embedding_weights"
    assert (after[0][wide][1:3] == after[2][wide][1:3]).all()
    assert (after[0][deep][1:3] != after[2][deep][1:3]).all()
