"""Trains a model whose table is split over the devices. test_large_tables.py runs it with several devices."""

import json
import sys

import jax
import numpy as np

import estimator_canned_tabular as tab
import estimator_core as ec

devices = jax.device_count()
rng = np.random.default_rng(0)
batches = [({"id": rng.integers(-1, 64, (16, 2))}, rng.integers(0, 2, (16, 1))) for _ in range(6)]
table = tab.embedding_column(tab.categorical_column_with_identity("id", 64), 4, combiner="sum")
config = ec.RunConfig(
    model_dir=sys.argv[1],
    tf_random_seed=1,
    default_hooks=False,
    mesh={"data": devices},
    partition_rules=[(".*/embedding_weights", ("data", None)), (".*/id/weights", ("data", None))],
)
estimator = tab.DNNLinearCombinedClassifier(
    linear_feature_columns=[table.categorical_column],
    linear_optimizer=lambda: tab.choose_optimizer("Ftrl", 0.1).transformation,
    dnn_feature_columns=[table],
    dnn_optimizer=lambda: tab.choose_optimizer("Adagrad", 0.1).transformation,
    dnn_hidden_units=[3],
    config=config,
)
estimator.train(lambda: batches)
weights = {name: value.tolist() for name, value in estimator.variables.items()}
print(json.dumps({"devices": devices, "weights": weights}))
