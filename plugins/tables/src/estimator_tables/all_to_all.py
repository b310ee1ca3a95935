"""A table whose rows are split over devices, which request the rows of their examples from each other."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import PartitionSpec

from estimator_core.backends import BATCH_AXES
from estimator_core.errors import ArgumentError
from estimator_core.model import WholeTable, is_in_host_memory
from estimator_tables.cache import WAYS, CachedRows, CachedTable, found_rows, updated
from estimator_tables.exchange import answers, delivered, questions
from estimator_tables.rows import applied, on_host, rows_of, summed_by_row, with_rows
from estimator_tables.split import Split, current_split

_WHOLE = WholeTable()
#: The names of the memory of the host in JAX.
_OF_THE_HOST = ("pinned_host", "unpinned_host")
#: The first version that can move arrays to the host within a program for CPUs.
_HOST_SINCE = (0, 10, 2)


@dataclass(frozen=True)
class AllToAll:
    """Splits the rows of a table over devices. They exchange ids and rows, each row once for each device that needs it.

    It is the `access` of `ec.sparse_lookup`. On one device, or if the number of rows is not divisible by the number of
    devices, it has the same effect as no access. A partition rule for the table must split its rows over the same axes,
    or be absent.

    Args:
        axes: the mesh axes that split the rows. Axes that a mesh does not have are ignored.
        room: the number of rows of one message between two devices, as a multiple of the even share. If more are
            needed, a read exchanges several messages, and an update exchanges larger ones. Messages of tables in the
            memory of the host have space for all rows.
        memory: the memory where each device has its rows and their optimizer slots. `"pinned_host"` is the memory of
            its host, from which only the rows of a batch are copied to the device. None is the memory of the device.
        cached_rows: the number of frequent rows of a table in the memory of the host that each device keeps in
            training, with their slots. It is a multiple of 8. All other code sees only the table, and the results are
            the same. 0: no cache.

    Attributes:
        sharding: the mesh axes of the two dimensions of a table: `axes` for its rows, and none for their elements.

    Raises:
        ArgumentError: there are no axes, the room is below 1, the number of cached rows cannot be used, or the kind of
            memory does not exist or needs a newer jax.

    Example:
        >>> import estimator_core as ec
        >>> def model_fn(features, labels, mode):
        ...     rows = ec.sparse_lookup("user", features["user"], (1_000_000, 16), access=AllToAll())
    """

    axes: tuple[str, ...] = BATCH_AXES
    room: float = 2.0
    memory: str | None = None
    cached_rows: int = 0
    sharding: tuple[tuple[str, ...], None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.axes, str) or not self.axes:
            raise ArgumentError(f"AllToAll: axes must be a tuple of names of mesh axes, given: {self.axes!r}.")
        if not self.room >= 1:
            raise ArgumentError(f"AllToAll: room must be at least 1, given: {self.room!r}.")
        if self.memory not in (None, *_OF_THE_HOST):
            raise ArgumentError(
                f"AllToAll: memory must be None or one of {', '.join(_OF_THE_HOST)}, given: {self.memory!r}."
            )
        if self.memory is not None and jax.__version_info__ < _HOST_SINCE:
            raise ArgumentError(
                f"AllToAll(memory={self.memory!r}) needs jax {'.'.join(map(str, _HOST_SINCE))}; this is jax "
                f"{jax.__version__}. Upgrade jax, or leave the table in the memory of the devices."
            )
        if not isinstance(self.cached_rows, int) or self.cached_rows < 0 or self.cached_rows % WAYS:
            raise ArgumentError(
                f"AllToAll: cached_rows must be a multiple of {WAYS}, or 0 for none, given: {self.cached_rows!r}."
            )
        if self.cached_rows and self.memory is None:
            raise ArgumentError(
                f"AllToAll(cached_rows={self.cached_rows}): the table is in the memory of the devices already. Pass "
                'memory="pinned_host", or leave out cached_rows.'
            )
        object.__setattr__(self, "sharding", (self.axes, None))

    @property
    def carried(self) -> CachedRows | None:
        """The form of the table in training: with a cache, or unchanged."""
        return CachedRows(self.cached_rows, self.axes) if self.cached_rows else None

    def summaries(self, table: jax.Array | CachedTable) -> dict[str, jax.Array]:
        """Returns `cache_hits`: the share of the distinct rows of the previous step that were in the cache."""
        if not self.cached_rows:
            return {}
        return {"cache_hits": table.hits if isinstance(table, CachedTable) else jnp.zeros(())}

    def read(self, table: jax.Array | CachedTable, ids: jax.Array) -> jax.Array:
        """Returns the rows of integer ids of any shape, with zeros for ids out of range."""
        if self.cached_rows and self.cached_rows >= table.shape[0]:
            raise ArgumentError(
                f"AllToAll(cached_rows={self.cached_rows}): the table has {table.shape[0]} rows, which all fit into "
                "the memory of the device then. Leave out memory and cached_rows, or keep fewer rows."
            )
        split = current_split(table.shape[0], self.axes)
        if self.memory is not None and not isinstance(table, CachedTable):
            table = on_host(table)
        if split is None or not all(isinstance(size, int) for size in ids.shape):  # an export has sizes without a value
            if self.memory is not None or isinstance(table, CachedTable):
                return found_rows(table, ids)
            return _WHOLE.read(table, ids)

        def of_device(part: jax.Array | CachedTable, ids: jax.Array) -> jax.Array:
            asked = questions(ids, split)
            return answers(part, asked, split, self._room(ids.size, split))[asked.places]

        rows = _by_rows(of_device, split)(table, _divisible(ids.astype(jnp.int32).reshape(-1), split, table.shape[0]))
        return rows[: ids.size].reshape(*ids.shape, table.shape[1])

    def update(
        self,
        transformation: optax.GradientTransformationExtraArgs,
        table: Any,
        opt_state: Any,
        ids: jax.Array,
        gradients: jax.Array,
        **extra: jax.Array,
    ) -> tuple[Any, Any]:
        """Returns the table and its optimizer state after a step. Each device updates its own rows."""
        split = current_split(table.shape[0], self.axes)
        if isinstance(table, CachedTable):
            touched = _touched(ids, gradients, table.shape[0], split)
            by_device = _alone if split is None else functools.partial(_by_rows, split=split)
            return updated(transformation, table, opt_state, touched, extra, by_device)
        if split is None and self.memory is None:
            return _WHOLE.update(transformation, table, opt_state, ids, gradients, **extra)
        if self.memory is not None:
            table, opt_state = _to_host(table, opt_state)
        if split is None:
            touched = _touched(ids, gradients, table.shape[0], None)
            return _update(transformation, table, opt_state, touched, extra)
        ids, gradients = _divisible(ids, split, split.rows), _divisible(gradients, split, 0)
        size = ids.size // split.count
        room = self._room(size, split)

        def once(room: int, state: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
            return _update(transformation, *state, _delivered(ids, gradients, split, room), extra, split)

        def with_room(room: int, times: int | jax.Array, state: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
            return lax.fori_loop(0, times, lambda _, state: once(room, state), state)

        if room >= size:
            return once(size, (table, opt_state))
        # A loop that runs once or not at all: XLA updates its state in place, but copies the state of a `cond`.
        fits = (_most(ids, split) <= room).astype(jnp.int32)
        return with_room(size, 1 - fits, with_room(room, fits, (table, opt_state)))

    def _room(self, ids: int, split: Split) -> int:
        """Returns the number of rows of a message for this number of ids of a device."""
        # Arrays of the host cannot be part of loops of the device, so there is one round.
        return ids if self.memory is not None else min(ids, math.ceil(self.room * ids / split.count))


def _to_host(table: jax.Array, opt_state: Any) -> tuple[jax.Array, Any]:
    """Marks the table and its slots as arrays of the host, because a program traced from shapes does not know it."""
    return on_host(table), jax.tree.map(lambda leaf: on_host(leaf) if leaf.shape == table.shape else leaf, opt_state)


def _touched(ids: jax.Array, gradients: jax.Array, rows: int, split: Split | None) -> tuple[jax.Array, jax.Array]:
    """Returns the touched rows, numbered within each part, and their gradients, in one message."""
    if split is None:
        return summed_by_row(ids, gradients, rows)
    ids, gradients = _divisible(ids, split, rows), _divisible(gradients, split, 0)
    return _delivered(ids, gradients, split, ids.size // split.count)


def _most(ids: jax.Array, split: Split) -> jax.Array:
    """Returns the number of rows that the largest message needs."""
    return _by_rows(lambda ids: questions(ids, split).most, split, PartitionSpec())(ids)


def _delivered(ids: jax.Array, gradients: jax.Array, split: Split, room: int) -> tuple[jax.Array, jax.Array]:
    """Returns the touched rows, numbered within each part, and their gradients. Both are split like the table."""

    def of_device(ids: jax.Array, gradients: jax.Array) -> tuple[jax.Array, jax.Array]:
        asked = questions(ids, split)
        own = jax.ops.segment_sum(gradients, asked.places, num_segments=ids.size)
        return delivered(own, asked, split, room)

    return _by_rows(of_device, split)(ids, gradients)


def _update(
    transformation: optax.GradientTransformationExtraArgs,
    table: jax.Array,
    opt_state: Any,
    touched: tuple[jax.Array, jax.Array],
    extra: dict[str, jax.Array],
    split: Split | None = None,
) -> tuple[jax.Array, Any]:
    """Applies an optimizer to the touched rows of the table and of its slots.

    Only reading and writing of rows happen device by device. The transformation receives the rows of all devices, so
    that one that combines rows (a norm) has the same result as on one device.
    """
    indices, gradients = touched
    take, put = (rows_of, with_rows) if split is None else (_by_rows(rows_of, split), _by_rows(with_rows, split))

    def gathered(leaf: jax.Array) -> jax.Array:
        return take(leaf, indices) if leaf.shape == table.shape else leaf

    def scattered(old: jax.Array, new: jax.Array) -> jax.Array:
        return put(old, indices, new) if old.shape == table.shape else new

    rows, slots = gathered(table), jax.tree.map(gathered, opt_state)
    if is_in_host_memory(table):
        new_rows, row_state = applied(transformation, rows, slots, gradients, extra)
        return scattered(table, new_rows), jax.tree.map(scattered, opt_state, row_state)
    updates, row_state = transformation.update(gradients, slots, rows, **extra)
    new_rows: Any = optax.apply_updates(rows, updates)
    return scattered(table, new_rows), jax.tree.map(scattered, opt_state, row_state)


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _by_rows(function: Callable[..., Any], split: Split, out: PartitionSpec | None = None) -> Callable[..., Any]:
    """Returns a function that each device runs on its part of every argument."""
    out_specs = split.by_rows if out is None else out
    by_parts = jax.shard_map(function, mesh=split.mesh, in_specs=split.by_rows, out_specs=out_specs, check_vma=False)

    def compiled(*arguments: Any) -> Any:
        with jax.disable_jit(False):
            return jax.jit(by_parts)(*arguments)

    # Otherwise the devices of `RunConfig(debug=True)` wait for each other in every operation, and some of them wait
    # forever.
    return compiled if cast(Any, jax.config).jax_disable_jit else by_parts


def _divisible(array: jax.Array, split: Split, fill: int) -> jax.Array:
    """Returns the array, padded until its length is divisible by the number of devices."""
    missing = -array.shape[0] % split.count
    return array if not missing else jnp.pad(array, [(0, missing), *[(0, 0)] * (array.ndim - 1)], constant_values=fill)
