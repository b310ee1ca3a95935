"""Rows of tables, and their combination to one row per example."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_tabular.columns.embedding import EmbeddingTable
from estimator_canned_tabular.layers.inputs import DeviceIds, with_first
from estimator_canned_tabular.optimizers import RowSparse
from estimator_core.errors import ArgumentError
from estimator_core.model import RowAccess, WholeTable


def table_rows(
    name: str,
    ids: jax.Array,
    shape: tuple[int, int],
    initializer: Any,
    *,
    row_sparse: RowSparse,
    trainable: bool = True,
    access: RowAccess | None = None,
) -> jax.Array:
    """Returns rows of a variable, float32[*ids.shape, columns], with zeros where an id is -1.

    Args:
        name: the name of the variable.
        ids: the row numbers, int32 of any shape.
        shape: the shape (rows, columns) of the variable.
        initializer: a function of `(key, shape, dtype)`.
        row_sparse: whether gradients and the optimizer change only the rows of the batch. "as_tf" counts as True.
        trainable: whether the variable is trained.
        access: the way to read and update rows.

    Raises:
        ArgumentError: an access is set, but the optimizer changes all rows.
    """
    if row_sparse and trainable:
        return ec.sparse_lookup(name, ids, shape, initializer, access=access or WholeTable())
    if access is not None:
        raise ArgumentError(
            f"The table {name!r} has an access ({access}), which updates the rows of a batch. It needs trainable=True, "
            "and an optimizer that leaves other rows alone: pass row_sparse=True to the model, or an optax "
            "transformation as its optimizer."
        )
    table = ec.get_variable(name, shape, initializer, trainable=trainable)
    return jnp.take(table, jnp.where(ids < 0, shape[0], ids), axis=0, mode="fill", fill_value=0)


def looked_up(given: DeviceIds, combiner: str, row_sparse: RowSparse) -> jax.Array:
    """Returns the ids whose rows the step changes, int32[batch, values].

    With "as_tf" they equal those of `safe_embedding_lookup_sparse`: an example without a category looks up row 0, whose
    value is not used. Except for "sum", categories without a positive weight do not count.
    """
    if row_sparse != "as_tf" or not given.ids.shape[1]:
        return given.ids
    ids = given.ids
    if given.weights is not None and combiner != "sum":
        ids = jnp.where(given.weights > 0, ids, -1)
    return with_first(ids, 0)


def combine(rows: jax.Array, given: DeviceIds, combiner: str) -> jax.Array:
    """Returns the rows of each example combined to one: sum, mean or "sqrtn", float32[batch, columns].

    "sqrtn" divides the weighted sum by the root of the sum of squared weights. An example without a value becomes
    zeros.
    """
    weights = (given.ids >= 0).astype(rows.dtype)
    if given.weights is not None:
        weights = weights * given.weights
    if combiner != "sum":
        weights = jnp.maximum(weights, 0.0)  # tf.estimator ignores weights below zero
    total = jnp.einsum("bk,bkd->bd", weights, rows, precision=jax.lax.Precision.HIGHEST)
    if combiner == "sum":
        return total
    size = jnp.sum(weights, axis=1) if combiner == "mean" else jnp.sqrt(jnp.sum(weights**2, axis=1))
    return total / jnp.where(size > 0, size, 1.0)[:, None]


def limit_norms(rows: jax.Array, max_norm: float | None) -> jax.Array:
    """Returns rows, scaled down to a maximum norm."""
    if max_norm is None:
        return rows
    squares = jnp.sum(rows**2, axis=-1, keepdims=True)
    norms = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    return rows * jnp.where(norms > max_norm, max_norm / norms, 1.0)


def embedding_rows(
    table: EmbeddingTable, name: str, ids: jax.Array, buckets: int, *, row_sparse: RowSparse
) -> jax.Array:
    """Returns rows of an embedding table, read with its settings."""
    rows = table_rows(
        name,
        ids,
        (buckets, table.dimension),
        table.initial_values,
        row_sparse=row_sparse,
        trainable=table.trainable,
        access=table.access,
    )
    if table.ckpt_to_load_from is not None and table.tensor_name_in_ckpt is not None:
        ec.init_from_checkpoint(table.ckpt_to_load_from, {table.tensor_name_in_ckpt: name})
    return limit_norms(rows, table.max_norm)
