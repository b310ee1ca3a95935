"""The model_fn of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import optax

import estimator_core as ec
from estimator_canned_tabular.columns.checks import listed
from estimator_canned_tabular.layers.cells import GRUCell, LSTMCell, RecurrentCell, SimpleRNNCell
from estimator_canned_tabular.layers.deep import dense
from estimator_canned_tabular.layers.dense_features import check_dense, dense_features
from estimator_canned_tabular.layers.recurrent import recurrent
from estimator_canned_tabular.layers.sequence_features import check_sequences, sequence_features
from estimator_canned_tabular.models.model_fn import ModelFn, contract_of, plan_of, with_host_parts
from estimator_canned_tabular.optimizers import ChosenOptimizer, RowSparse, choose_optimizer, clip_each_by_norm
from estimator_core.errors import ArgumentError, check_count, is_integer

_RATE, _CLIP_NORM = 0.05, 5.0
_CELLS: dict[str, Callable[[int], RecurrentCell]] = {"simple_rnn": SimpleRNNCell, "lstm": LSTMCell, "gru": GRUCell}
_SEQUENCES, _CONTEXT, _MODEL = "sequence_features", "dense_features", "rnn_model"


def rnn_model_fn(
    head: Any,
    sequence_feature_columns: Sequence[Any],
    context_feature_columns: Sequence[Any] | None = None,
    units: int | Sequence[int] | None = None,
    cell_type: str | Callable[[int], RecurrentCell] | None = None,
    rnn_cell_fn: Callable[[], Any] | None = None,
    return_sequences: bool = False,
    optimizer: Any = "Adagrad",
    *,
    row_sparse: RowSparse | None = None,
) -> ModelFn:
    """Returns the model_fn of `RNNEstimator`. The arguments are the same.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> from estimator_canned_tabular import sequence_numeric_column
        >>> from estimator_heads import RegressionHead
        >>> model_fn = rnn_model_fn(RegressionHead(), [sequence_numeric_column("x")], units=8)
    """
    sequences = listed(sequence_feature_columns, "sequence_feature_columns")
    context = listed(context_feature_columns or (), "context_feature_columns")
    check_sequences(sequences)
    if context:
        check_dense(context, "context_feature_columns")
    cells = _cells(units, cell_type, rnn_cell_fn)
    mask_key = getattr(head, "input_sequence_mask_key", None)
    if return_sequences and mask_key is None:
        raise ArgumentError(
            "Provided head must be a `SequentialHeadWrapper` object when `return_sequences` is set to True."
        )
    chosen = _chosen(optimizer, row_sparse)
    plan = plan_of(head, (*sequences, *context))
    contract = contract_of(head, plan)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        sparse = chosen.row_sparse
        inputs, lengths = sequence_features(sequences, features, plan, scope=_SEQUENCES, row_sparse=sparse)
        if context:
            filled = plan.with_fills(features, contract.known)
            beside = dense_features(context, filled, plan, scope=_CONTEXT, row_sparse=sparse)
            beside = jnp.broadcast_to(beside[:, None], (*inputs.shape[:2], beside.shape[1]))
            inputs = jnp.concatenate([inputs, beside], axis=-1)
        mask = jnp.arange(inputs.shape[1]) < lengths[:, None]
        outputs = recurrent(cells, inputs, mask, scope=_MODEL, return_sequences=return_sequences)
        logits = dense(outputs, head.logits_dimension, f"{_MODEL}/logits")
        if return_sequences and mask_key not in features:
            features = {**features, mask_key: mask}
        contract.declare()
        return contract.head.create_estimator_spec(
            features, mode, logits, labels=labels, train_op_fn=lambda loss: chosen.transformation
        )

    return with_host_parts(model_fn, plan, contract)


def _cells(units: Any, cell_type: Any, rnn_cell_fn: Any) -> list[RecurrentCell]:
    if rnn_cell_fn is not None:
        if units is not None or cell_type is not None:
            raise ArgumentError("units and cell_type must not be specified when using rnn_cell_fn.")
        made = rnn_cell_fn()
        return list(made) if isinstance(made, (list, tuple)) else [made]
    several = isinstance(units, Iterable) and getattr(units, "ndim", 1)
    sizes: list[Any] = list(units) if several else [units]
    if not sizes or any(not is_integer(size) or size < 1 for size in sizes):
        raise ArgumentError(f"units must be a positive integer, or one for each layer, given: {units!r}.")
    make: Any = cell_type if callable(cell_type) else _CELLS.get(cell_type or "simple_rnn")
    if make is None:
        raise ArgumentError(
            "`cell_type` should be a class producing a RNN cell, or a string specifying the cell type. Supported "
            f"strings are: {list(_CELLS)}. Given: {cell_type!r}."
        )
    return [make(check_count("units", size)) for size in sizes]


def _chosen(optimizer: Any, row_sparse: RowSparse | None) -> ChosenOptimizer:
    if not isinstance(optimizer, str):
        return choose_optimizer(optimizer, None, row_sparse)
    chosen = choose_optimizer(optimizer, _RATE, row_sparse)
    # The norm of the gradient of a table includes only its touched rows in both cases.
    return ChosenOptimizer(optax.chain(clip_each_by_norm(_CLIP_NORM), chosen.transformation), chosen.row_sparse)
