"""Wide and deep estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.estimators.heads import SUM_OVER_BATCH_SIZE, classifier_head, regression_head
from estimator_canned_tabular.models.combined import dnn_linear_combined_model_fn
from estimator_canned_tabular.optimizers import RowSparse


class DNNLinearCombinedClassifier(ec.Estimator):
    """A classifier with a linear and a deep part, which are trained together.

    Args:
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        linear_feature_columns: columns of the linear part. None: no linear part.
        linear_optimizer: see `LinearClassifier`. A name has the rate `min(0.005, 1 / sqrt(number of columns))`.
        dnn_feature_columns: dense columns of the deep part. None: no deep part.
        dnn_optimizer: see `DNNClassifier`. A name has the rate 0.001.
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm: see `DNNClassifier`.
        n_classes: the number of classes. Two classes have one logit.
        weight_column: the feature or numeric column with the weight of each example.
        label_vocabulary: names of the classes, if labels are strings.
        loss_reduction: "sum_over_batch_size" or "sum".
        linear_sparse_combiner: how the values of a categorical column are combined: "sum", "mean" or "sqrtn".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> x = [numeric_column("x")]
        >>> columns = {"linear_feature_columns": x, "dnn_feature_columns": x}
        >>> estimator = DNNLinearCombinedClassifier(**columns, dnn_hidden_units=[8])

    Source: `tf.estimator.DNNLinearCombinedClassifier`.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[..., Any] | None = None,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dnn_linear_combined_model_fn(
                classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
                linear_feature_columns,
                linear_optimizer,
                dnn_feature_columns,
                dnn_optimizer,
                dnn_hidden_units,
                dnn_activation_fn,
                dnn_dropout,
                batch_norm,
                linear_sparse_combiner,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )


class DNNLinearCombinedRegressor(ec.Estimator):
    """A regressor with a linear and a deep part, which are trained together.

    Args:
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        linear_feature_columns: columns of the linear part. None: no linear part.
        linear_optimizer: see `LinearClassifier`. A name has the rate `min(0.005, 1 / sqrt(number of columns))`.
        dnn_feature_columns: dense columns of the deep part. None: no deep part.
        dnn_optimizer: see `DNNClassifier`. A name has the rate 0.001.
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm: see `DNNClassifier`.
        label_dimension: the number of values per label.
        weight_column: the feature or numeric column with the weight of each example.
        loss_reduction: "sum_over_batch_size" or "sum".
        linear_sparse_combiner: how the values of a categorical column are combined: "sum", "mean" or "sqrtn".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> x = [numeric_column("x")]
        >>> columns = {"linear_feature_columns": x, "dnn_feature_columns": x}
        >>> estimator = DNNLinearCombinedRegressor(**columns, dnn_hidden_units=[8])

    Source: `tf.estimator.DNNLinearCombinedRegressor`.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[..., Any] | None = None,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dnn_linear_combined_model_fn(
                regression_head(label_dimension, weight_column, loss_reduction),
                linear_feature_columns,
                linear_optimizer,
                dnn_feature_columns,
                dnn_optimizer,
                dnn_hidden_units,
                dnn_activation_fn,
                dnn_dropout,
                batch_norm,
                linear_sparse_combiner,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )


class DNNLinearCombinedEstimator(ec.Estimator):
    """A model with a linear and a deep part and any head. The parts are trained together.

    Args:
        head: computes loss, predictions, metrics and signatures: a head of estimator-heads, or your own.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        linear_feature_columns: columns of the linear part. None: no linear part.
        linear_optimizer: see `LinearClassifier`. A name has the rate `min(0.005, 1 / sqrt(number of columns))`.
        dnn_feature_columns: dense columns of the deep part. None: no deep part.
        dnn_optimizer: see `DNNClassifier`. A name has the rate 0.001.
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm: see `DNNClassifier`.
        linear_sparse_combiner: how the values of a categorical column are combined: "sum", "mean" or "sqrtn".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import RegressionHead
        >>> x = [numeric_column("x")]
        >>> columns = {"linear_feature_columns": x, "dnn_feature_columns": x}
        >>> estimator = DNNLinearCombinedEstimator(RegressionHead(), **columns, dnn_hidden_units=[8])

    Source: `tf.estimator.DNNLinearCombinedEstimator`.
    """

    def __init__(
        self,
        head: Any,
        model_dir: str | None = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[..., Any] | None = None,
        dnn_dropout: float | None = None,
        config: ec.RunConfig | None = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
        *,
        warm_start_from: Any = None,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dnn_linear_combined_model_fn(
                head,
                linear_feature_columns,
                linear_optimizer,
                dnn_feature_columns,
                dnn_optimizer,
                dnn_hidden_units,
                dnn_activation_fn,
                dnn_dropout,
                batch_norm,
                linear_sparse_combiner,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )
