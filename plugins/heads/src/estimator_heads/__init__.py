"""Heads for estimator-core: loss, predictions, metrics and signatures of a task.

Importing this package imports no jax: each name is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_heads import losses as losses
    from estimator_heads import metrics as metrics
    from estimator_heads.added_metrics import add_metrics as add_metrics
    from estimator_heads.base_head import BaseHead as BaseHead
    from estimator_heads.binary_class_head import BinaryClassHead as BinaryClassHead
    from estimator_heads.data.contract import HeadContract as HeadContract
    from estimator_heads.data.learned_facts import digest as digest
    from estimator_heads.data.rule import Fault as Fault
    from estimator_heads.data.rule import not_finite as not_finite
    from estimator_heads.data.rule import shown as shown
    from estimator_heads.data.rule import surely_finite as surely_finite
    from estimator_heads.keys import MetricKeys as MetricKeys
    from estimator_heads.keys import PredictionKeys as PredictionKeys
    from estimator_heads.logistic_regression_head import LogisticRegressionHead as LogisticRegressionHead
    from estimator_heads.losses.options import LossOptions as LossOptions
    from estimator_heads.multi_class_head import MultiClassHead as MultiClassHead
    from estimator_heads.multi_head import MultiHead as MultiHead
    from estimator_heads.multi_label_head import MultiLabelHead as MultiLabelHead
    from estimator_heads.optimizers import adagrad as adagrad
    from estimator_heads.optimizers import adam as adam
    from estimator_heads.optimizers import ftrl as ftrl
    from estimator_heads.per_example_head import PerExampleHead as PerExampleHead
    from estimator_heads.poisson_regression_head import PoissonRegressionHead as PoissonRegressionHead
    from estimator_heads.ranking_head import RankingHead as RankingHead
    from estimator_heads.reduction import Reduction as Reduction
    from estimator_heads.regression_head import RegressionHead as RegressionHead
    from estimator_heads.retrieval_head import RetrievalHead as RetrievalHead
    from estimator_heads.sequential_head import SequentialHeadWrapper as SequentialHeadWrapper
    from estimator_heads.token_classification_head import TokenClassificationHead as TokenClassificationHead

__version__ = "0.1.0"

_HOME = {
    "BaseHead": "base_head",
    "BinaryClassHead": "binary_class_head",
    "Fault": "data.rule",
    "HeadContract": "data.contract",
    "LogisticRegressionHead": "logistic_regression_head",
    "LossOptions": "losses.options",
    "MetricKeys": "keys",
    "MultiClassHead": "multi_class_head",
    "MultiHead": "multi_head",
    "MultiLabelHead": "multi_label_head",
    "PerExampleHead": "per_example_head",
    "PoissonRegressionHead": "poisson_regression_head",
    "PredictionKeys": "keys",
    "RankingHead": "ranking_head",
    "Reduction": "reduction",
    "RegressionHead": "regression_head",
    "RetrievalHead": "retrieval_head",
    "SequentialHeadWrapper": "sequential_head",
    "TokenClassificationHead": "token_classification_head",
    "adagrad": "optimizers",
    "adam": "optimizers",
    "add_metrics": "added_metrics",
    "digest": "data.learned_facts",
    "ftrl": "optimizers",
    "not_finite": "data.rule",
    "shown": "data.rule",
    "surely_finite": "data.rule",
}
_SUBMODULES = ("losses", "metrics")
__all__ = [*_HOME, *_SUBMODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_SUBMODULES])
