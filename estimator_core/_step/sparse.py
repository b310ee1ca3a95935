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
from dataclasses import dataclass, field, replace
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import DTypeLike

from estimator_core._jax_values import is_in_host_memory
from estimator_core._model.scope import Output, active_scope
from estimator_core._model.variables import as_computed, make_spec
from estimator_core._types import Arrays, PyTree
from estimator_core.errors import VariableError
from estimator_core.modes import ModeKeys


class CarriedForm(Protocol):
    """A form of a table and its slots with more than the arrays themselves, for example a cache of rows.

    Training programs accept and return it. It is never saved: checkpoints, hooks, evaluation and exports see tables and
    slots. Its methods accept concrete arrays only. A table in this form has `shape` and `dtype`.

    Example:
        >>> class Unchanged:
        ...     def opened(self, table, opt_state):
        ...         return table, opt_state
        ...
        ...     settled = closed = opened
        >>> form: CarriedForm = Unchanged()
        >>> form.closed(*form.settled(*form.opened("table", "slots")))
        ('table', 'slots')
    """

    def opened(self, table: jax.Array, opt_state: PyTree) -> tuple[PyTree, PyTree]:
        """Returns the form of a table and of its slots.

        It may use their arrays. Planners pass `jax.ShapeDtypeStruct`s with shardings, and the result then contains such
        structs too.
        """
        ...

    def settled(self, table: PyTree, opt_state: PyTree) -> tuple[PyTree, PyTree]:
        """Returns the same form with updated arrays for `closed`. It may donate the old arrays."""
        ...

    def closed(self, table: PyTree, opt_state: PyTree) -> tuple[jax.Array, PyTree]:
        """Returns the arrays of a settled form: the table and its slots. It does not compute anything."""
        ...


class RowAccess(Protocol):
    """Defines how the rows of a table are read and updated.

    Packages can define their own access, to split tables over devices or to let them grow.

    It is compared by value, because all lookups of a table must have the same access. An access may have a member
    `carried`, a `CarriedForm` or None. In training, `read` and `update` then also accept this form as table and slots.
    It may have a function `summaries` of a table, or of its carried form. It returns numbers that each step writes
    below the name of the table.
    """

    @property
    def sharding(self) -> tuple[str | tuple[str, ...] | None, ...] | None:
        """The split of the table if no partition rule matches, with one entry per axis. None: not split."""
        ...

    @property
    def memory(self) -> str | None:
        """The kind of memory for the table and its slots, as named by JAX. None: the default memory of the device."""
        ...

    def read(self, table: jax.Array, ids: jax.Array) -> jax.Array:
        """Returns the rows for integer ids of any shape, and zeros for an id out of range.

        PREDICT, which is exported, uses `WholeTable.read` if the table is in the memory of the devices.
        """
        ...

    def update(
        self,
        transformation: optax.GradientTransformationExtraArgs,
        table: jax.Array,
        opt_state: PyTree,
        ids: jax.Array,
        gradients: jax.Array,
        **extra: jax.Array,
    ) -> tuple[jax.Array, PyTree]:
        """Returns the table and its optimizer state after a step.

        Args:
            transformation: the transformation of the optimizer.
            table: all rows.
            opt_state: the optimizer state of this table alone.
            ids: integers[n], the ids of all lookups of a step, in order. Ids may repeat or be out of range.
            gradients: float[n, columns], the gradients of the result of `read`.
            extra: further arguments of the transformation.
        """
        ...


def forms_of(tables: Mapping[str, RowAccess]) -> dict[str, CarriedForm]:
    """Returns the tables that training carries in another form."""
    forms = {name: getattr(access, "carried", None) for name, access in tables.items()}
    return {name: form for name, form in forms.items() if form is not None}


@dataclass(frozen=True)
class WholeTable:
    """The default access of a table. The compiler decides how to split it.

    Example:
        >>> WholeTable().read(jnp.ones((3, 2)), jnp.array([1, 3])).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """

    sharding: None = None
    memory: None = None

    def read(self, table: jax.Array, ids: jax.Array) -> jax.Array:
        """See `RowAccess`."""
        ids = jnp.where(ids < 0, table.shape[0], ids)  # jax would count negative ids from the end
        return jnp.take(table, ids, axis=0, mode="fill", fill_value=0)

    def update(
        self,
        transformation: optax.GradientTransformationExtraArgs,
        table: jax.Array,
        opt_state: PyTree,
        ids: jax.Array,
        gradients: jax.Array,
        **extra: jax.Array,
    ) -> tuple[jax.Array, PyTree]:
        """See `RowAccess`."""
        indices, rows = touched_rows(ids, gradients, table.shape[0])
        return update_rows(transformation, table, opt_state, indices, rows, **extra)


@dataclass
class Lookups:
    """The lookups of one trace, in call order.

    `ids` maps `"<table>#<n>"` to the ids of a lookup. `deltas` has the deltas to add (None during discovery).
    """

    deltas: Mapping[str, jax.Array] | None = None
    ids: Arrays = field(default_factory=dict)
    shapes: dict[str, tuple[tuple[int, ...], np.dtype]] = field(default_factory=dict)
    tables: dict[str, RowAccess] = field(default_factory=dict)


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
    access: RowAccess | None = None,
) -> jax.Array:
    """Returns rows of a trainable table, with a gradient that touches only these rows.

    Args:
        name: the variable name of the table (below the active variable scope).
        ids: integers of any shape, in [0, rows). Other ids return rows of zeros and are not updated.
        shape: (rows, columns) of the table.
        initializer: see `get_variable`.
        dtype: the dtype of the table.
        access: how rows are read and updated. None: `estimator_core.model.WholeTable`.

    Returns:
        An array of shape `ids.shape + (columns,)`.

    The optimizer's transformation is applied only to the touched rows ("lazy" moments). Rows that a batch does not
    touch do not move or decay. Transformations that combine variables (a global norm) see each table separately.
    Quantities of a whole table (the trust ratio of LAMB, the orthogonal update of Muon) are computed over the touched
    rows. Transformations with slots for whole rows or columns, or that keep gradients for a later step, are refused
    when training starts.

    Raises:
        VariableError: the ids are not integers, or another lookup of the table has a different access.
    """
    ids = jnp.asarray(ids)
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise VariableError(f"sparse_lookup({name!r}): ids must be integers, given {ids.dtype}.")
    if ids.dtype.itemsize < 4:  # the number of rows may exceed the range of a smaller dtype
        ids = ids.astype(jnp.int32)
    elif ids.dtype != jnp.int32:
        ids = jnp.where((ids >= 0) & (ids < shape[0]), ids.astype(jnp.int32), -1)
    access = WholeTable() if access is None else access
    scope = active_scope("ec.sparse_lookup")
    path = scope.path(name)
    spec = make_spec(path, shape, initializer, dtype, True, access.sharding)
    table = jax.lax.stop_gradient(scope.read(replace(spec, memory=getattr(access, "memory", None))))
    reader = WholeTable() if scope.mode == ModeKeys.PREDICT and not is_in_host_memory(table) else access
    rows = as_computed(spec, reader.read(table, ids))
    lookups = _active.get()
    if lookups is None:
        return rows
    key = f"{path}#{sum(existing.rpartition('#')[0] == path for existing in lookups.ids)}"
    if path not in lookups.tables:
        for tag, value in getattr(access, "summaries", _no_summaries)(table).items():
            scope.add_output(f"{path}/{tag}", Output("scalar", value))
    if lookups.tables.setdefault(path, access) != access:
        raise VariableError(f"Lookups of {path!r} differ in their access: {lookups.tables[path]} and {access}.")
    lookups.ids[key] = ids
    lookups.shapes[key] = (rows.shape, rows.dtype)
    return rows if lookups.deltas is None else rows + lookups.deltas[key]


def _no_summaries(table: PyTree) -> Arrays:
    return {}


def zero_deltas(shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> Arrays:
    """Returns zeros for every lookup of a trace."""
    return {key: jnp.zeros(shape, dtype) for key, (shape, dtype) in shapes.items()}


def of_table(
    path: str, ids: Mapping[str, jax.Array], gradients: Mapping[str, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """Returns all ids that a step looked up in a table, int32[n], and the gradients of their rows, float[n,
    columns].
    """
    keys = [key for key in ids if key.rpartition("#")[0] == path]
    flat_ids = jnp.concatenate([ids[key].reshape(-1) for key in keys]).astype(jnp.int32)
    return flat_ids, jnp.concatenate([gradients[key].reshape(-1, gradients[key].shape[-1]) for key in keys])


def touched_rows(ids: jax.Array, gradients: jax.Array, rows: int) -> tuple[jax.Array, jax.Array]:
    """Returns the distinct rows among some ids, and their summed gradients.

    Returns:
        `(indices, gradients)`: int32[n] (unused places hold `rows`, out of range) and float[n, columns]; n is the
        number of ids.
    """
    ids = jnp.where((ids >= 0) & (ids < rows), ids, rows)
    size = math.prod(ids.shape)
    indices, places = jnp.unique(ids, size=size, fill_value=rows, return_inverse=True)
    sums = jax.ops.segment_sum(gradients, places.reshape(-1), num_segments=size)
    return indices, jnp.where((indices < rows)[:, None], sums, 0)  # so that ids out of range do not count in a norm


def update_rows(
    transformation: optax.GradientTransformationExtraArgs,
    table: jax.Array,
    opt_state: PyTree,
    indices: jax.Array,
    gradients: jax.Array,
    **extra: jax.Array,
) -> tuple[jax.Array, PyTree]:
    """Applies an optimizer to some rows of a table and of its slots, in place if buffers are donated.

    Everything else stays untouched.
    """

    def gather(leaf: jax.Array) -> jax.Array:
        return leaf.at[indices].get(mode="fill", fill_value=0) if leaf.shape == table.shape else leaf

    def scatter(old: jax.Array, new: jax.Array) -> jax.Array:
        return old.at[indices].set(new, mode="drop") if old.shape == table.shape else new

    rows = gather(table)
    updates, row_state = transformation.update(gradients, jax.tree.map(gather, opt_state), rows, **extra)
    new_rows: PyTree = optax.apply_updates(rows, updates)
    return scatter(table, new_rows), jax.tree.map(scatter, opt_state, row_state)
