"""The declarations of estimator-heads for estimator-core. They are imported at start-up, so keep this module light."""

from estimator_core.plugins import Component, hookimpl

ESTIMATOR_PLUGIN_API = (1, 0)

_HEADS = {
    "binary_class": ("BinaryClassHead", "Two classes, one logit."),
    "multi_class": ("MultiClassHead", "One class out of several."),
    "multi_label": ("MultiLabelHead", "Any number of classes per example."),
    "regression": ("RegressionHead", "Numbers, squared error."),
    "logistic_regression": ("LogisticRegressionHead", "A number between 0 and 1."),
    "poisson_regression": ("PoissonRegressionHead", "Counts."),
    "multi_head": ("MultiHead", "Several heads on one model."),
    "sequential": ("SequentialHeadWrapper", "A head for each step of sequences."),
    "token_classification": ("TokenClassificationHead", "One class per token, span scores."),
    "ranking": ("RankingHead", "Order of lists, pairwise or listwise."),
    "retrieval": ("RetrievalHead", "Two towers, in-batch softmax."),
}
_TRANSFORMS = {
    "class_names": ("ClassNames", "Class names from class ids."),
    "label_ids": ("LabelIds", "Class ids from label strings."),
    "multi_hot_labels": ("MultiHotLabels", "Multi-hot labels from lists of labels."),
}


@hookimpl
def estimator_components() -> list[Component]:
    """Declares the heads, and the host transforms of their vocabularies."""
    heads = [
        Component(kind="head", name=name, target=f"estimator_heads:{attribute}", summary=summary)
        for name, (attribute, summary) in _HEADS.items()
    ]
    transforms = [
        Component(kind="transform", name=name, target=f"estimator_heads.transforms:{attribute}", summary=summary)
        for name, (attribute, summary) in _TRANSFORMS.items()
    ]
    return heads + transforms
