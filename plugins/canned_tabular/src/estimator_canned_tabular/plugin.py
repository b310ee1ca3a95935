"""The components and commands of estimator-canned-tabular. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component

ESTIMATOR_PLUGIN_API = (1, 0)

_MODELS = {
    "linear_classifier": ("LinearClassifier", "Classes from a weighted sum of the features."),
    "linear_regressor": ("LinearRegressor", "Numbers from a weighted sum of the features."),
    "linear": ("LinearEstimator", "Any head on a weighted sum of the features."),
    "dnn_classifier": ("DNNClassifier", "Classes from hidden layers."),
    "dnn_regressor": ("DNNRegressor", "Numbers from hidden layers."),
    "dnn": ("DNNEstimator", "Any head on hidden layers."),
    "dnn_linear_combined_classifier": ("DNNLinearCombinedClassifier", "Classes from a wide and a deep part."),
    "dnn_linear_combined_regressor": ("DNNLinearCombinedRegressor", "Numbers from a wide and a deep part."),
    "dnn_linear_combined": ("DNNLinearCombinedEstimator", "Any head on a wide and a deep part."),
    "baseline_classifier": ("BaselineClassifier", "How often each class occurs."),
    "baseline_regressor": ("BaselineRegressor", "The mean of the labels."),
    "baseline": ("BaselineEstimator", "Any head on a bias."),
    "rnn_classifier": ("RNNClassifier", "Classes of sequences."),
    "rnn": ("RNNEstimator", "Any head on a recurrent network."),
    "kmeans": ("KMeans", "Clusters of points."),
    "dcn": ("DCNEstimator", "Any head on a deep and cross network."),
    "dlrm": ("DLRMEstimator", "Any head on products of embeddings."),
    "two_tower": ("TwoTowerEstimator", "Retrieval with two towers."),
}
_TRANSFORMS = {
    "tabular_features": ("FeatureIds", "Ids of feature columns from strings and numbers."),
    "tabular_numbers": ("CheckedNumbers", "Numbers of features, checked to be finite."),
    "tabular_examples": ("TabularExamples", "Features of columns from serialized tf.Examples."),
}


def estimator_components() -> Sequence[Component]:
    """Returns the models and the host transforms that their exports use."""
    models = [
        Component(kind="model", name=name, target=f"estimator_canned_tabular:{attribute}", summary=summary)
        for name, (attribute, summary) in _MODELS.items()
    ]
    transforms = [
        Component(kind="transform", name=name, target=f"estimator_canned_tabular:{attribute}", summary=summary)
        for name, (attribute, summary) in _TRANSFORMS.items()
    ]
    return [*models, *transforms]


def estimator_commands() -> Sequence[Command]:
    """Returns the command `estimator tabular`."""
    return [
        Command(
            name="tabular",
            target="estimator_canned_tabular.cli.tabular",
            summary="Train a model on a CSV file: columns, training, evaluation, export.",
        )
    ]
