"""Wide and deep models: the sum of a linear and a deep model with separate optimizers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.layers.deep import DeepOptions, deep_logits
from estimator_canned_tabular.layers.dense_features import check_dense, dense_features, shared_tables
from estimator_canned_tabular.layers.linear import check_linear, linear_logits
from estimator_canned_tabular.models.deep import INPUT_SCOPE
from estimator_canned_tabular.models.linear import check_combiner, linear_learning_rate, write_bias
from estimator_canned_tabular.models.model_fn import ModelFn, head_model_fn, plan_of
from estimator_canned_tabular.optimizers import RowSparse, choose_optimizer
from estimator_core.errors import ArgumentError

_HIGHEST_LINEAR_RATE, _DNN_RATE = 0.005, 0.001


def dnn_linear_combined_model_fn(
    head: Any,
    linear_feature_columns: Sequence[Any] | None = None,
    linear_optimizer: Any = "Ftrl",
    dnn_feature_columns: Sequence[Any] | None = None,
    dnn_optimizer: Any = "Adagrad",
    dnn_hidden_units: Sequence[int] | None = None,
    dnn_activation_fn: Callable[..., Any] | None = None,
    dnn_dropout: float | None = None,
    batch_norm: bool = False,
    linear_sparse_combiner: str = "sum",
    *,
    row_sparse: RowSparse | None = None,
) -> ModelFn:
    """Returns the model_fn of `DNNLinearCombinedEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import numeric_column
        >>> from estimator_heads import RegressionHead
        >>> x = numeric_column("x")
        >>> model_fn = dnn_linear_combined_model_fn(
        ...     RegressionHead(), [x], dnn_feature_columns=[x], dnn_hidden_units=[8]
        ... )
    """
    wide = listed(linear_feature_columns or (), "linear_feature_columns")
    deep = listed(dnn_feature_columns or (), "dnn_feature_columns")
    if not wide and not deep:
        raise ArgumentError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    options = DeepOptions.of(dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm)
    if bool(deep) != bool(options.hidden_units):
        raise ArgumentError("dnn_feature_columns and dnn_hidden_units must be defined together.")
    check_combiner(linear_sparse_combiner)
    if wide:
        check_linear(wide, "linear_feature_columns")
    if deep:
        check_dense(deep, "dnn_feature_columns")
    linear = choose_optimizer(linear_optimizer, linear_learning_rate(wide, _HIGHEST_LINEAR_RATE), row_sparse)
    dnn = choose_optimizer(dnn_optimizer, _DNN_RATE, row_sparse)
    plan = plan_of(head, (*wide, *deep))

    def logits_of(features: Any, mode: str) -> Any:
        units, parts = head.logits_dimension, []
        if deep:
            inputs = dense_features(deep, features, plan, scope=INPUT_SCOPE, row_sparse=dnn.row_sparse)
            parts.append(deep_logits(inputs, units, options, mode))
        if wide:
            parts.append(
                linear_logits(
                    wide,
                    features,
                    plan,
                    units=units,
                    sparse_combiner=linear_sparse_combiner,
                    row_sparse=linear.row_sparse,
                )
            )
            write_bias(units)
        return sum(parts[1:], parts[0])

    def train_op_fn(loss: Any) -> Any:
        members = []
        if deep:
            names = "|".join(("dnn/.*", *map(re.escape, sorted(shared_tables(deep)))))
            members.append(ec.minimize(loss, dnn.transformation, variables=names))
        if wide:
            only_wide = sorted(shared_tables(wide) - shared_tables(deep))
            names = "|".join(("linear/.*", *map(re.escape, only_wide)))
            members.append(ec.minimize(loss, linear.transformation, variables=names))
        return ec.group(*members)

    return head_model_fn(head, plan, logits_of, train_op_fn)
