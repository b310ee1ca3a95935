"""Baselines: models that do not use features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.estimators.heads import SUM_OVER_BATCH_SIZE, classifier_head, regression_head
from estimator_canned_tabular.models.baseline import baseline_model_fn


class BaselineClassifier(ec.Estimator):
    """A classifier that predicts the frequency of each class.

    Args:
        model_dir, config, plugins: see `ec.Estimator`.
        n_classes: the number of classes. Two classes have one logit.
        weight_column: the feature or numeric column with the weight of each example.
        label_vocabulary: names of the classes, if labels are strings.
        optimizer: a name (rate 0.3), an optax transformation, or a function that returns one.
        loss_reduction: "sum_over_batch_size" or "sum".

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> estimator = BaselineClassifier(n_classes=3)

    Source: `tf.estimator.BaselineClassifier`.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: ec.RunConfig | None = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        *,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            baseline_model_fn(classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction), optimizer),
            model_dir=model_dir,
            config=config,
            plugins=plugins,
        )


class BaselineRegressor(ec.Estimator):
    """A regressor that predicts the mean of the labels.

    Args:
        model_dir, config, plugins: see `ec.Estimator`.
        label_dimension: the number of values per label.
        weight_column: the feature or numeric column with the weight of each example.
        optimizer: a name (rate 0.3), an optax transformation, or a function that returns one.
        loss_reduction: "sum_over_batch_size" or "sum".

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> estimator = BaselineRegressor()

    Source: `tf.estimator.BaselineRegressor`.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: ec.RunConfig | None = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        *,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            baseline_model_fn(regression_head(label_dimension, weight_column, loss_reduction), optimizer),
            model_dir=model_dir,
            config=config,
            plugins=plugins,
        )


class BaselineEstimator(ec.Estimator):
    """A model with only a bias and any head.

    Args:
        head: computes loss, predictions, metrics and signatures: a head of estimator-heads, or your own.
        model_dir, config, plugins: see `ec.Estimator`.
        optimizer: a name (rate 0.3), an optax transformation, or a function that returns one.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_heads import PoissonRegressionHead
        >>> estimator = BaselineEstimator(PoissonRegressionHead())

    Source: `tf.estimator.BaselineEstimator`.
    """

    def __init__(
        self,
        head: Any,
        model_dir: str | None = None,
        optimizer: Any = "Ftrl",
        config: ec.RunConfig | None = None,
        *,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            baseline_model_fn(head, optimizer),
            model_dir=model_dir,
            config=config,
            plugins=plugins,
        )
