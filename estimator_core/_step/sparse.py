"""Row-sparse lookups: a table whose gradient and optimizer update touch only the rows that a batch looked up.

The table is not differentiated. Each lookup adds a zero `delta` of the shape of its result. The gradient of the loss by
the delta is the gradient of the rows, and the optimizer runs on the gathered rows of the table and of its slots. The
cost of a step depends on the touched rows, not on the size of the table.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import DTypeLike

from estimator_core._model.access import get_variable
from estimator_core._model.scope import active_scope
from estimator_core._types import Arrays, PyTree
from estimator_core.errors import VariableError


@dataclass
class Lookups:
    """The lookups of one trace, in call order: `"<table>#<n>"` to the ids, and the deltas to add (None while they are
    being discovered).
    """

    deltas: Mapping[str, jax.Array] | None = None
    ids: Arrays = field(default_factory=dict)
    shapes: dict[str, tuple[tuple[int, ...], np.dtype]] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)


_active: contextvars.ContextVar[Lookups | None] = contextvars.ContextVar("estimator_core_sparse_lookups", default=None)


@contextlib.contextmanager
def recording(deltas: Mapping[str, jax.Array] | None = None) -> Generator[Lookups]:
    """Collects the lookups of the model_fn called inside."""
    lookups = Lookups(deltas)
    token = _active.set(lookups)
    try:
        yield lookups
    finally:
        _active.reset(token)


def sparse_lookup(
    name: str,
    ids: jax.Array,
    shape: tuple[int, int],
    initializer: Callable[..., jax.Array] | None = None,
    dtype: DTypeLike = jnp.float32,
) -> jax.Array:
    """Rows of a trainable table, with a gradient that touches only those rows.

    Args:
        name: the table's variable name (below the active variable scope).
        ids: integers of any shape, in [0, rows); other ids return rows of zeros and have no update.
        shape: (rows, columns) of the table.
        initializer: as in `get_variable`.
        dtype: the dtype of the table.

    Returns:
        An array of shape `ids.shape + (columns,)`.

    The optimizer's transformation is applied only to the touched rows ("lazy" moments). Rows that a batch does not
    touch neither move nor decay. Transformations that mix variables (a global norm) see each table alone.

    Raises:
        VariableError: the ids are not integers, or the table is also read as a whole.
    """
    ids = jnp.asarray(ids)
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise VariableError(f"sparse_lookup({name!r}): ids must be integers, given {ids.dtype}.")
    table, path = _table(name, shape, initializer, dtype)
    ids = jnp.where(ids < 0, shape[0], ids)  # jax would count negative ids from the end
    rows = jnp.take(jax.lax.stop_gradient(table), ids, axis=0, mode="fill", fill_value=0)
    lookups = _active.get()
    if lookups is None:
        return rows
    key = f"{path}#{sum(existing.rpartition('#')[0] == path for existing in lookups.ids)}"
    lookups.tables.add(path)
    lookups.ids[key] = ids
    lookups.shapes[key] = (rows.shape, rows.dtype)
    return rows if lookups.deltas is None else rows + lookups.deltas[key]


def _table(
    name: str, shape: tuple[int, int], initializer: Callable[..., jax.Array] | None, dtype: DTypeLike
) -> tuple[jax.Array, str]:
    return get_variable(name, shape, initializer, dtype), active_scope("ec.sparse_lookup").path(name)


def zero_deltas(shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> Arrays:
    """Zeros for every lookup of a trace."""
    return {key: jnp.zeros(shape, dtype) for key, (shape, dtype) in shapes.items()}


def touched_rows(
    path: str, ids: Mapping[str, jax.Array], gradients: Mapping[str, jax.Array], rows: int
) -> tuple[jax.Array, jax.Array]:
    """The distinct rows of a table that a step touched, and their summed gradients.

    Returns:
        `(indices, gradients)`: int32[n] (unused places hold `rows`, out of range) and float[n, columns]; n is the
        number of ids that were looked up.
    """
    keys = [key for key in ids if key.rpartition("#")[0] == path]
    flat_ids = jnp.concatenate([ids[key].reshape(-1) for key in keys]).astype(jnp.int32)
    flat_ids = jnp.where((flat_ids >= 0) & (flat_ids < rows), flat_ids, rows)
    flat_gradients = jnp.concatenate([gradients[key].reshape(-1, gradients[key].shape[-1]) for key in keys])
    size = math.prod(flat_ids.shape)
    indices, places = jnp.unique(flat_ids, size=size, fill_value=rows, return_inverse=True)
    return indices, jax.ops.segment_sum(flat_gradients, places.reshape(-1), num_segments=size)


def update_rows(
    transformation: optax.GradientTransformationExtraArgs,
    table: jax.Array,
    opt_state: PyTree,
    indices: jax.Array,
    gradients: jax.Array,
    **extra: jax.Array,
) -> tuple[jax.Array, PyTree]:
    """Applies an optimizer to some rows of a table and of its slots, in place if buffers are donated. Everything else
    stays untouched.
    """

    def gather(leaf: jax.Array) -> jax.Array:
        return leaf.at[indices].get(mode="fill", fill_value=0) if leaf.shape == table.shape else leaf

    def scatter(old: jax.Array, new: jax.Array) -> jax.Array:
        return old.at[indices].set(new, mode="drop") if old.shape == table.shape else new

    rows = gather(table)
    updates, row_state = transformation.update(gradients, jax.tree.map(gather, opt_state), rows, **extra)
    new_rows: PyTree = optax.apply_updates(rows, updates)
    return scatter(table, new_rows), jax.tree.map(scatter, opt_state, row_state)
