"""Estimators with hidden layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.estimators.heads import SUM_OVER_BATCH_SIZE, classifier_head, regression_head
from estimator_canned_tabular.models.deep import dnn_model_fn
from estimator_canned_tabular.optimizers import RowSparse


class DNNClassifier(ec.Estimator):
    """A classifier with hidden layers.

    Args:
        hidden_units: the sizes of the hidden layers.
        feature_columns: dense columns: numeric, bucketized, indicator, embedding.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        n_classes: the number of classes. Two classes have one logit.
        weight_column: the feature or numeric column with the weight of each example.
        label_vocabulary: names of the classes, if labels are strings.
        optimizer: a name (rate 0.001), an optax transformation, or a function that returns one.
        activation_fn: the activation after each hidden layer. None: relu.
        dropout: the dropout rate.
        batch_norm: whether to apply batch normalisation after each hidden layer.
        loss_reduction: "sum_over_batch_size" or "sum".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> estimator = DNNClassifier([16, 8], [numeric_column("x")], n_classes=3)

    Source: `tf.estimator.DNNClassifier`.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[..., Any] | None = None,
        dropout: float | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dnn_model_fn(
                classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
                hidden_units,
                feature_columns,
                optimizer,
                activation_fn,
                dropout,
                batch_norm,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )


class DNNRegressor(ec.Estimator):
    """A regressor with hidden layers.

    Args:
        hidden_units: the sizes of the hidden layers.
        feature_columns: dense columns: numeric, bucketized, indicator, embedding.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        label_dimension: the number of values per label.
        weight_column: the feature or numeric column with the weight of each example.
        optimizer: a name (rate 0.001), an optax transformation, or a function that returns one.
        activation_fn: the activation after each hidden layer. None: relu.
        dropout: the dropout rate.
        batch_norm: whether to apply batch normalisation after each hidden layer.
        loss_reduction: "sum_over_batch_size" or "sum".
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> estimator = DNNRegressor([16, 8], [numeric_column("x")])

    Source: `tf.estimator.DNNRegressor`.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[..., Any] | None = None,
        dropout: float | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dnn_model_fn(
                regression_head(label_dimension, weight_column, loss_reduction),
                hidden_units,
                feature_columns,
                optimizer,
                activation_fn,
                dropout,
                batch_norm,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )


class DNNEstimator(ec.Estimator):
    """A model with hidden layers and any head.

    Args:
        head: computes loss, predictions, metrics and signatures: a head of estimator-heads, or your own.
        hidden_units: the sizes of the hidden layers.
        feature_columns: dense columns: numeric, bucketized, indicator, embedding.
        model_dir, config, warm_start_from, plugins: see `ec.Estimator`.
        optimizer: a name (rate 0.001), an optax transformation, or a function that returns one.
        activation_fn: the activation after each hidden layer. None: relu.
        dropout: the dropout rate.
        batch_norm: whether to apply batch normalisation after each hidden layer.
        row_sparse: whether tables are updated row by row. None: see `choose_optimizer`.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import PoissonRegressionHead
        >>> estimator = DNNEstimator(PoissonRegressionHead(), [16], [numeric_column("x")])

    Source: `tf.estimator.DNNEstimator`.
    """

    def __init__(
        self,
        head: Any,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: str | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[..., Any] | None = None,
        dropout: float | None = None,
        config: ec.RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
        *,
        row_sparse: RowSparse | None = None,
        plugins: Any = None,
    ) -> None:
        super().__init__(
            dnn_model_fn(
                head,
                hidden_units,
                feature_columns,
                optimizer,
                activation_fn,
                dropout,
                batch_norm,
                row_sparse=row_sparse,
            ),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
            plugins=plugins,
        )
