"""Feature columns and canned models of tables for estimator-core.

The import of this package does not import its modules: each public name is imported when it is first used.
`__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "columns": (
        "CategoricalColumn",
        "DenseColumn",
        "FeatureColumn",
        "bucketized_column",
        "categorical_column_with_hash_bucket",
        "categorical_column_with_identity",
        "categorical_column_with_vocabulary_file",
        "categorical_column_with_vocabulary_list",
        "crossed_column",
        "embedding_column",
        "indicator_column",
        "numeric_column",
        "sequence_categorical_column_with_hash_bucket",
        "sequence_categorical_column_with_identity",
        "sequence_categorical_column_with_vocabulary_file",
        "sequence_categorical_column_with_vocabulary_list",
        "sequence_numeric_column",
        "shared_embeddings",
        "weighted_categorical_column",
    ),
    "errors": ("FeatureColumnError",),
    "estimators.baseline": ("BaselineClassifier", "BaselineEstimator", "BaselineRegressor"),
    "estimators.combined": (
        "DNNLinearCombinedClassifier",
        "DNNLinearCombinedEstimator",
        "DNNLinearCombinedRegressor",
    ),
    "estimators.dcn": ("DCNEstimator",),
    "estimators.dlrm": ("DLRMEstimator",),
    "estimators.dnn": ("DNNClassifier", "DNNEstimator", "DNNRegressor"),
    "estimators.kmeans": ("KMeans",),
    "estimators.linear": ("LinearClassifier", "LinearEstimator", "LinearRegressor"),
    "estimators.recurrent": ("RNNClassifier", "RNNEstimator"),
    "estimators.two_tower": ("TwoTowerEstimator",),
    "hashing": ("fingerprint64",),
    "host.checked_numbers": ("CheckedNumbers",),
    "host.examples": ("TabularExamples", "columns_receiver_fn"),
    "host.plan": ("FeaturePlan",),
    "host.transform": ("FeatureIds",),
    "keras_models.model_to_estimator": ("model_to_estimator",),
    "known_words": ("strict_vocabularies",),
    "layers.cells": ("GRUCell", "LSTMCell", "RecurrentCell", "SimpleRNNCell"),
    "layers.dense_features": ("dense_features",),
    "layers.linear": ("linear_logits",),
    "layers.sequence_features": ("sequence_features",),
    "models.baseline": ("baseline_model_fn",),
    "models.combined": ("dnn_linear_combined_model_fn",),
    "models.dcn": ("dcn_model_fn",),
    "models.deep": ("dnn_model_fn",),
    "models.dlrm": ("dlrm_model_fn",),
    "models.kmeans": ("KMeansOptions", "kmeans_model_fn"),
    "models.linear": ("linear_model_fn",),
    "models.recurrent": ("rnn_model_fn",),
    "models.two_tower": ("two_tower_model_fn",),
    "optimizers": ("choose_optimizer",),
    "parsing": ("classifier_parse_example_spec", "make_parse_example_spec", "regressor_parse_example_spec"),
    "vocabularies": ("frequent_values",),
}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _HOME.items() for name in names}
__all__ = list(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
