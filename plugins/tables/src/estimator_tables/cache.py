"""A cache on the device for the frequent rows of a table in the memory of the host.

A row of the table belongs to one of the sets of the cache, its number modulo the number of sets. A set has `WAYS`
places. A row in the cache, with its optimizer slots, is read and updated there, so the copy on the host is older. The
row is written to the host when it leaves the cache, and when code outside of training reads the table
(`CachedRows.settled`).

An occurrence in a step keeps a row for `STEPS` further steps. A new row takes the place whose time ends first, unless
that place would be kept longer than the new row. Then the new row stays on the host.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimator_tables.rows import applied, on_host, rows_of, with_rows
from estimator_tables.split import split_over

#: The number of places of a set.
WAYS = 8
#: The number of steps for which one occurrence keeps a row, and the maximum for many occurrences.
STEPS, MOST_STEPS = 64, 4096
#: Rows outside of the cache are copied in rounds. A round has the distinct rows of a batch divided by this number, and
#: at least `LEAST`.
PART_OF_BATCH, LEAST = 16, 128
_EMPTY = -1


class CachedTable(NamedTuple):
    """The carried form of a table. If there are several devices, each has its part of every array.

    Attributes:
        host: [rows, columns], the table. The rows in the cache may be newer.
        rows: [places, columns], the cached rows, in the memory of the device.
        ids: int32[sets, WAYS], the number of the row in each place within the part of the device; -1: no row.
        until: int32[sets, WAYS], the clock up to which the row is kept.
        clock: int32[devices], the number of steps.
        found: int32[devices, 2], for the last step: the number of distinct rows in the cache, and of touched rows.
    """

    host: jax.Array
    rows: jax.Array
    ids: jax.Array
    until: jax.Array
    clock: jax.Array
    found: jax.Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return self.host.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the table."""
        return self.host.dtype

    @property
    def hits(self) -> jax.Array:
        """The share of the distinct rows of the last step that were in the cache; 0 if there were none."""
        had, touched = self.found.sum(axis=0)
        return had / jnp.maximum(touched, 1)


class CachedSlots(NamedTuple):
    """The carried form of the optimizer state of a table.

    Attributes:
        slots: the state. Arrays with the shape of the table are in the memory of the host.
        rows: for each of these arrays, [places, columns] in the memory of the device.
    """

    slots: Any
    rows: tuple[jax.Array, ...]


@dataclass(frozen=True)
class CachedRows:
    """The form of a table with a cache: see `estimator_core.model.CarriedForm`.

    Attributes:
        rows: the number of places on each device.
        axes: the mesh axes that split the table.
    """

    rows: int
    axes: tuple[str, ...]

    def opened(self, table: jax.Array, opt_state: Any) -> tuple[CachedTable, CachedSlots]:
        """Returns the carried forms with an empty cache."""
        mesh, axes = self._split(table)
        count = math.prod(mesh.shape[axis] for axis in axes)

        def beside(value: int, dtype: Any, *shape: int) -> Any:
            where, whole = NamedSharding(mesh, PartitionSpec(axes)), (count * shape[0], *shape[1:])
            if isinstance(table, jax.ShapeDtypeStruct):  # an array of a plan
                return jax.ShapeDtypeStruct(whole, dtype, sharding=where)
            return jnp.full(whole, value, dtype, device=where)

        def places(leaf: jax.Array) -> Any:
            return beside(0, leaf.dtype, self.rows, leaf.shape[1])

        ids, until = (beside(value, jnp.int32, self.rows // WAYS, WAYS) for value in (_EMPTY, 0))
        cached = CachedTable(table, places(table), ids, until, beside(0, jnp.int32, 1), beside(0, jnp.int32, 1, 2))
        return cached, CachedSlots(opt_state, tuple(map(places, _by_rows(opt_state, table))))

    def settled(self, table: CachedTable, opt_state: CachedSlots) -> tuple[CachedTable, CachedSlots]:
        """Returns the carried forms after the rows of the cache were written to the host."""
        hosts = table.host, *_by_rows(opt_state.slots, table)
        program = _settling(*self._split(table.host), tuple(host.sharding for host in hosts))
        table_rows, *slots = program(hosts, (table.rows, *opt_state.rows), table.ids)
        return table._replace(host=table_rows), opt_state._replace(slots=_with(opt_state.slots, table, slots))

    def closed(self, table: CachedTable, opt_state: CachedSlots) -> tuple[jax.Array, Any]:
        """Returns the table and its slots."""
        return table.host, opt_state.slots

    def _split(self, table: jax.Array) -> tuple[Mesh, tuple[str, ...]]:
        """Returns the mesh, and those of its axes that split the rows."""
        mesh: Any = table.sharding
        found = split_over(mesh.mesh, table.shape[0], self.axes)
        return mesh.mesh, () if found is None else found.axes


def found_rows(part: jax.Array | CachedTable, numbers: jax.Array) -> jax.Array:
    """Returns rows of the part of a device, from its cache if they are in it, with zeros for a number out of range.

    Args:
        part: the part of the table.
        numbers: the row numbers, int32, of any shape.
    """
    if not isinstance(part, CachedTable):
        return rows_of(part, numbers)
    count = part.shape[0]
    flat = jnp.where((numbers >= 0) & (numbers < count), numbers, count).reshape(-1)
    distinct, places = jnp.unique(flat, size=flat.size, fill_value=count, return_inverse=True)
    found = _taken((on_host(part.host),), (part.rows,), part.ids, distinct)[0]
    return found[places.reshape(-1)].reshape(*numbers.shape, part.shape[1])


def updated(
    transformation: optax.GradientTransformationExtraArgs,
    table: CachedTable,
    opt_state: CachedSlots,
    touched: tuple[jax.Array, jax.Array],
    extra: dict[str, jax.Array],
    by_device: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> tuple[CachedTable, CachedSlots]:
    """Applies an optimizer to the touched rows, and keeps frequent rows in the cache.

    Args:
        transformation: the transformation of the optimizer. It receives the rows of all devices together.
        table: the table.
        opt_state: the slots of the table.
        touched: the distinct row numbers within the part of each device, and the gradients.
        extra: arguments of the transformation.
        by_device: a function that returns another one, which each device runs on its part of every argument.
    """
    numbers, gradients = touched
    hosts = tuple(map(on_host, (table.host, *_by_rows(opt_state.slots, table))))
    caches = table.rows, *opt_state.rows
    rows, *slots = by_device(_taken)(hosts, caches, table.ids, numbers)
    new, changed = applied(transformation, rows, _with(opt_state.slots, table, slots), gradients, extra)
    state = table.ids, table.until, table.clock, table.found
    values = new, *_by_rows(changed, rows)
    hosts, caches, state = by_device(_put)(hosts, caches, state, numbers, values)
    return CachedTable(hosts[0], caches[0], *state), CachedSlots(_with(changed, rows, hosts[1:]), tuple(caches[1:]))


def overwritten(
    table: CachedTable, opt_state: CachedSlots, numbers: jax.Array, rows: jax.Array, slots: Any
) -> tuple[CachedTable, CachedSlots]:
    """Returns the carried forms with other values in some rows and their slots.

    Args:
        table: the table.
        opt_state: the slots of the table.
        numbers: int32[n], the distinct, non-negative row numbers in the whole table. Numbers beyond the table are
            ignored.
        rows: the new values, [n, columns].
        slots: the new optimizer state of these n rows.
    """
    count, parts = table.shape[0], table.clock.size
    part, sets = count // parts, table.ids.shape[0] // parts
    chosen = jnp.minimum(numbers // part, parts - 1) * sets + numbers % part % sets
    same = table.ids[chosen] == (numbers % part)[:, None]
    there = same.any(axis=1) & (numbers < count)
    places = jnp.where(there, chosen * WAYS + jnp.argmax(same, axis=1), table.rows.shape[0])
    values = rows, *_by_rows(slots, rows)
    hosts = table.host, *_by_rows(opt_state.slots, table)
    table_rows, *hosts = (with_rows(host, numbers, new) for host, new in zip(hosts, values, strict=True))
    caches = (table.rows, *opt_state.rows)
    cached_rows, *caches = (cache.at[places].set(new, mode="drop") for cache, new in zip(caches, values, strict=True))
    changed = table._replace(host=table_rows, rows=cached_rows)
    return changed, CachedSlots(_with(opt_state.slots, table, hosts), tuple(caches))


def _taken(
    hosts: Sequence[jax.Array], caches: Sequence[jax.Array], ids: jax.Array, numbers: jax.Array
) -> list[jax.Array]:
    """Returns the rows of every array, each number once, from the cache if they are in it."""
    count = hosts[0].shape[0]
    if not numbers.size:
        return [cache[:0] for cache in caches]
    places, hits = _found(ids, numbers)
    chosen, rounds, room = _compact(~hits & (numbers < count))

    def one_round(number: jax.Array, found: list[jax.Array]) -> list[jax.Array]:
        at = lax.dynamic_slice(chosen, (number * room,), (room,))
        wanted = numbers.at[at].get(mode="fill", fill_value=count)
        return [rows.at[at].set(rows_of(host, wanted), mode="drop") for rows, host in zip(found, hosts, strict=True)]

    there = [jnp.where(hits[:, None], cache[places], 0) for cache in caches]
    return lax.fori_loop(0, rounds, one_round, there)


def _put(
    hosts: tuple[jax.Array, ...],
    caches: tuple[jax.Array, ...],
    state: tuple[jax.Array, ...],
    numbers: jax.Array,
    new: tuple[jax.Array, ...],
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """Writes new rows of every array to the cache or to the host. Rows that leave the cache are written to the host."""
    count, (ids, until, clock, found) = hosts[0].shape[0], state
    size, now = ids.size, clock[0] + 1
    if not numbers.size:
        return hosts, caches, (ids, until, clock, jnp.zeros_like(found))
    places, hits = _found(ids, numbers)
    known = jnp.minimum(jnp.maximum(until.reshape(-1)[places], now) + STEPS, now + MOST_STEPS)
    until = until.reshape(-1).at[jnp.where(hits, places, size)].set(known, mode="drop")
    misses = ~hits & (numbers < count)
    given, admitted = _dealt(until.reshape(ids.shape), numbers % ids.shape[0], misses, now)
    left = jnp.where(admitted, ids.reshape(-1)[given], _EMPTY)
    to_host = jnp.where(admitted, jnp.where(left == _EMPTY, count, left), jnp.where(misses, numbers, count))
    chosen, rounds, room = _compact(to_host < count)

    def one_round(number: jax.Array, hosts: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        at = lax.dynamic_slice(chosen, (number * room,), (room,))
        rows = to_host.at[at].get(mode="fill", fill_value=count)
        leaves = admitted.at[at].get(mode="fill", fill_value=False)[:, None]
        places = given.at[at].get(mode="fill", fill_value=0)
        return tuple(
            with_rows(host, rows, jnp.where(leaves, cache[places], values.at[at].get(mode="fill", fill_value=0)))
            for host, cache, values in zip(hosts, caches, new, strict=True)
        )

    # A loop updates its state in place. A round without rows to copy does not run.
    hosts = lax.fori_loop(0, rounds, one_round, hosts)
    place = jnp.where(admitted, given, jnp.where(hits, places, size))
    caches = tuple(cache.at[place].set(values, mode="drop") for cache, values in zip(caches, new, strict=True))
    taken = jnp.where(admitted, given, size)
    ids = ids.reshape(-1).at[taken].set(numbers, mode="drop").reshape(ids.shape)
    until = until.at[taken].set(now + STEPS, mode="drop").reshape(ids.shape)
    return (
        hosts,
        caches,
        (ids, until, clock + 1, jnp.stack([hits.sum(), (hits | misses).sum()])[None].astype(jnp.int32)),
    )


def _found(ids: jax.Array, numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the place of each number, valid only if it has one, and whether it has one."""
    sets = numbers % ids.shape[0]
    same = ids[sets] == numbers[:, None]
    return sets * WAYS + jnp.argmax(same, axis=1).astype(jnp.int32), same.any(axis=1)


def _dealt(until: jax.Array, sets: jax.Array, wants: jax.Array, now: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Assigns places to new rows, in each set those whose time ends first. Returns them, and whether a row has one."""
    count = until.shape[0]
    wanted = jnp.where(wants, sets, count)
    order = jnp.argsort(wanted, stable=True)
    ordered = wanted[order]
    rank = jnp.zeros_like(sets).at[order].set(jnp.arange(sets.size, dtype=jnp.int32) - _first(ordered))
    ends = until[sets]
    way = jnp.take_along_axis(jnp.argsort(ends, axis=1, stable=True), jnp.clip(rank, 0, WAYS - 1)[:, None], axis=1)
    end = jnp.take_along_axis(ends, way, axis=1)[:, 0]
    return sets * WAYS + way[:, 0].astype(jnp.int32), wants & (rank < WAYS) & (end < now + STEPS)


def _first(ordered: jax.Array) -> jax.Array:
    """Returns the position where each value of an ordered array starts."""
    return jnp.searchsorted(ordered, ordered).astype(jnp.int32)


def _compact(chosen: jax.Array) -> tuple[jax.Array, jax.Array, int]:
    """Returns the positions of the chosen items, padded with the size, the number of rounds, and their length."""
    size = chosen.size
    room = min(size, max(LEAST, -(-size // PART_OF_BATCH)))
    places = jnp.nonzero(chosen, size=-(-size // room) * room, fill_value=size)[0].astype(jnp.int32)
    return places, -(-jnp.sum(chosen) // room), room


@functools.lru_cache(maxsize=64)
def _settling(mesh: Mesh, axes: tuple[str, ...], where: tuple[Any, ...]) -> Callable[..., Any]:
    """Returns the program that writes the rows of a cache to the host, in place."""

    def settled(hosts: tuple[jax.Array, ...], caches: tuple[jax.Array, ...], ids: jax.Array) -> Any:
        count = hosts[0].shape[0]
        rows = jnp.where(ids == _EMPTY, count, ids).reshape(-1)
        return tuple(with_rows(host, rows, cache) for host, cache in zip(hosts, caches, strict=True))

    parts = PartitionSpec(axes)

    def program(hosts: tuple[jax.Array, ...], caches: tuple[jax.Array, ...], ids: jax.Array) -> Any:
        run = jax.shard_map(settled, mesh=mesh, in_specs=parts, out_specs=parts, check_vma=False) if axes else settled
        return run(tuple(map(on_host, hosts)), caches, ids)

    return jax.jit(program, donate_argnums=0, out_shardings=where)


def _by_rows(opt_state: Any, table: Any) -> list[jax.Array]:
    """Returns the leaves that have a row for each row of the table."""
    return [leaf for leaf in jax.tree.leaves(opt_state) if leaf.shape == table.shape]


def _with(opt_state: Any, table: Any, rows: Sequence[jax.Array]) -> Any:
    """Returns the state with other arrays in place of these leaves."""
    given = iter(rows)
    return jax.tree.map(lambda leaf: next(given) if leaf.shape == table.shape else leaf, opt_state)
