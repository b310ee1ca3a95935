"""Linear estimators, which compute a weighted sum of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.estimators.heads import SUM_OVER_BATCH_SIZE, classifier_head, regression_head
from estimator_canned_tabular.models.linear import linear_model_fn
from estimator_canned_tabular.optimizers import RowSparse


class LinearClassifier(ec.Estimator):
    """A linear classifier.

    Args:
        feature_columns: any columns except sequences. Categorical columns are used directly.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        n_classes: the number of classes. Two classes have one logit.
        weight_column: the feature or numeric column with the weight of each example.
        label_vocabulary: names of the classes, if labels are strings.
        optimizer: a name (rate 0.2), an optax transformation, or a function that returns one; None: Ftrl with the rate
            `min(0.2, 1 / sqrt(number of columns))`.
        loss_reduction: "sum_over_batch_size" or "sum".
        sparse_combiner: how the values of a categorical column are combined: "sum", "mean" or "sqrtn".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> estimator = LinearClassifier([numeric_column("x")], n_classes=3)

    Source: `tf.estimator.LinearClassifier`.
    """

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        sparse_combiner: str = "sum",
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            linear_model_fn(
                classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
                feature_columns,
                optimizer,
                sparse_combiner,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )


class LinearRegressor(ec.Estimator):
    """A linear regressor.

    Args:
        feature_columns: any columns except sequences. Categorical columns are used directly.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        label_dimension: the number of values per label.
        weight_column: the feature or numeric column with the weight of each example.
        optimizer: a name (rate 0.2), an optax transformation, or a function that returns one; None: Ftrl with the rate
            `min(0.2, 1 / sqrt(number of columns))`.
        loss_reduction: "sum_over_batch_size" or "sum".
        sparse_combiner: how the values of a categorical column are combined: "sum", "mean" or "sqrtn".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> estimator = LinearRegressor([numeric_column("x")])

    Source: `tf.estimator.LinearRegressor`.
    """

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        sparse_combiner: str = "sum",
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            linear_model_fn(
                regression_head(label_dimension, weight_column, loss_reduction),
                feature_columns,
                optimizer,
                sparse_combiner,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )


class LinearEstimator(ec.Estimator):
    """A linear model with any head.

    Args:
        head: computes loss, predictions, metrics and signatures: a head of estimator-heads, or your own.
        feature_columns: any columns except sequences. Categorical columns are used directly.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        optimizer: a name (rate 0.2), an optax transformation, or a function that returns one; None: Ftrl with the rate
            `min(0.2, 1 / sqrt(number of columns))`.
        sparse_combiner: how the values of a categorical column are combined: "sum", "mean" or "sqrtn".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import PoissonRegressionHead
        >>> estimator = LinearEstimator(PoissonRegressionHead(), [numeric_column("x")])

    Source: `tf.estimator.LinearEstimator`.
    """

    def __init__(
        self,
        head: Any,
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        optimizer: Any = "Ftrl",
        config: ec.RunConfig | None = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            linear_model_fn(
                head,
                feature_columns,
                optimizer,
                sparse_combiner,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )
