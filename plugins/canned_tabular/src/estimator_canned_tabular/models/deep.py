"""The model_fn of hidden layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.layers.deep import DeepOptions, deep_logits
from estimator_canned_tabular.layers.dense_features import check_dense, dense_features
from estimator_canned_tabular.models.model_fn import ModelFn, head_model_fn, plan_of, train_everything
from estimator_canned_tabular.optimizers import RowSparse, choose_optimizer

#: The scope of the embedding tables.
INPUT_SCOPE = "dnn/input_from_feature_columns/input_layer"


def dnn_model_fn(
    head: Any,
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    optimizer: Any = "Adagrad",
    activation_fn: Callable[..., Any] | None = None,
    dropout: float | None = None,
    batch_norm: bool = False,
    *,
    row_sparse: RowSparse | None = None,
) -> ModelFn:
    """Returns the model_fn of `DNNEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import RegressionHead
        >>> model_fn = dnn_model_fn(RegressionHead(), [8], [numeric_column("x")])
    """
    columns = listed(feature_columns, "feature_columns")
    check_dense(columns, "feature_columns")
    options = DeepOptions.of(hidden_units, activation_fn, dropout, batch_norm)
    chosen = choose_optimizer(optimizer, None, row_sparse)
    plan = plan_of(head, columns)

    def logits_of(features: Any, mode: str) -> Any:
        inputs = dense_features(columns, features, plan, scope=INPUT_SCOPE, row_sparse=chosen.row_sparse)
        return deep_logits(inputs, head.logits_dimension, options, mode)

    return head_model_fn(head, plan, logits_of, train_everything(chosen))
