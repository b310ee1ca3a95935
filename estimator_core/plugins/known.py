"""Which distribution gives what, for the error text where it is not installed. Nothing else reads this table."""

from __future__ import annotations

from collections.abc import Mapping

_GIVES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "estimator-heads": {
        "head": (
            "binary_class",
            "multi_class",
            "multi_label",
            "regression",
            "poisson_regression",
            "logistic_regression",
            "multi_head",
        ),
    },
    "estimator-hooks": {"hook": ("progress", "profiler", "early_stopping", "iterator_initializer")},
    "estimator-exporters": {
        "exporter": ("best", "latest", "final"),
        "format": ("stablehlo", "saved_model", "onnx"),
    },
    "estimator-backends-gpu": {"backend": ("gpu",)},
    "estimator-backends-tpu": {"backend": ("tpu",)},
    "estimator-canned-bert": {"model": ("bert_classifier",)},
}


def known_distribution(kind: str, name: str) -> str | None:
    """The distribution that gives a component of this kind and name, if it is a known one.

    Example:
        >>> known_distribution("backend", "gpu")
        'estimator-backends-gpu'
    """
    for distribution, kinds in _GIVES.items():
        if name in kinds.get(kind, ()):
            return distribution
    return None
