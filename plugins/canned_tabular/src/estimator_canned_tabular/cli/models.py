"""The models of the command by name."""

from __future__ import annotations

import importlib.util
from typing import Any

import optax

from estimator_canned_tabular.cli import features
from estimator_canned_tabular.cli.recipe import Recipe
from estimator_canned_tabular.cli.scaled_regression import ScaledRegressionHead
from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.models.baseline import baseline_model_fn
from estimator_canned_tabular.models.combined import dnn_linear_combined_model_fn
from estimator_canned_tabular.models.dcn import dcn_model_fn
from estimator_canned_tabular.models.deep import dnn_model_fn
from estimator_canned_tabular.models.linear import linear_model_fn
from estimator_canned_tabular.models.model_fn import ModelFn
from estimator_heads import BinaryClassHead, MultiClassHead, RegressionHead


def model_fn_of(name: str, schema: Schema, recipe: Recipe, weight_column: str | None, *, plots: bool) -> ModelFn:
    """Returns the model_fn of a model by name, one of `MODELS`.

    Raises:
        ArgumentError: a size is impossible.
    """
    head = _head(schema, weight_column, plots=plots)
    adam = optax.adamw(recipe.learning_rate, weight_decay=recipe.weight_decay)
    units, dropout = recipe.hidden_units, recipe.dropout or None
    sparse = features.has_large_tables(schema)
    wide, deep = features.wide_columns(schema), features.deep_columns(schema)
    makers = {
        "linear": lambda: linear_model_fn(head, wide, adam, row_sparse=sparse),
        "dnn": lambda: dnn_model_fn(head, units, deep, adam, dropout=dropout, row_sparse=sparse),
        "dcn": lambda: dcn_model_fn(head, deep, hidden_units=units, optimizer=adam, dropout=dropout, row_sparse=sparse),
        "baseline": lambda: baseline_model_fn(head, adam),
        "dnn_linear_combined": lambda: dnn_linear_combined_model_fn(
            head, wide, adam, deep, adam, units, dnn_dropout=dropout, row_sparse=sparse
        ),
    }
    return makers[name]()


def _head(schema: Schema, weight_column: str | None, *, plots: bool) -> Any:
    if schema.normalises_label:
        return ScaledRegressionHead(mean=schema.mean, scale=schema.scale, weight_column=weight_column)
    if not schema.classes:
        return RegressionHead(weight_column=weight_column)
    options: dict[str, Any] = {
        "weight_column": weight_column,
        "label_vocabulary": list(schema.classes),
        "plots": plots and importlib.util.find_spec("matplotlib") is not None,
    }
    return BinaryClassHead(**options) if len(schema.classes) == 2 else MultiClassHead(len(schema.classes), **options)
