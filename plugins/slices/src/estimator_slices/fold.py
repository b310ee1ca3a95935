"""The program that adds one batch to the metrics of its slices, and the program that reads them at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.metrics import Mean, Metric, merge_metrics, split_host_metrics
from estimator_slices.hoisting import dependent, hoisted

#: The largest number of example weights that are processed together: slices times groups times rows.
_TOGETHER = 2**19
Metrics = dict[str, Metric]


class Table(NamedTuple):
    """The metrics of slices.

    Attributes:
        seen: bool [slices, groups]: whether there was an example.
        metrics: the metrics by name, each with the leading axes [slices, groups].
    """

    seen: Any
    metrics: Metrics


class Keys(NamedTuple):
    """The slices of a batch.

    Attributes:
        slots: the places in the table to which each row belongs, int32 [rows, crossings + 1]. -1 means no place.
        groups: the group of each row, int32 [rows].
        cells: the places that occur in `slots`, int32 of any length, filled up with a number that is not a place.
    """

    slots: Any
    groups: Any
    cells: Any


def of_examples(batch_metrics: Callable[..., Metrics]) -> Callable[..., Metrics]:
    """Returns the function without means of scalars, which count once per batch and have no value for a slice.

    Args:
        batch_metrics: the function of `Run.batch_metrics`.
    """

    def chosen(state: Any, features: Any, labels: Any, weights: Any) -> Metrics:
        found = batch_metrics(state, features, labels, weights)
        if weights is None:
            rows = next(leaf.shape[0] for leaf in jax.tree.leaves((features, labels)) if np.ndim(leaf))
            weights = jnp.ones(rows, jnp.float32)
        varies = dependent(batch_metrics, (state, features, labels), weights)
        return {
            name: metric for name, metric in found.items() if not (isinstance(metric, Mean) and not varies[name].weight)
        }

    return chosen


def folding(batch_metrics: Callable[..., Metrics], groups: int) -> Callable[..., tuple[Table, Metrics]]:
    """Returns the function `(table, state, features, labels, weights, keys) -> (table, metrics of whole arrays)`.

    Args:
        batch_metrics: the function of `Run.batch_metrics`.
        groups: the number of groups of examples.
    """

    def fold(table: Table, state: Any, features: Any, labels: Any, weights: Any, keys: Keys) -> tuple[Table, Metrics]:
        rows = keys.slots.shape[0]
        counts = jnp.ones(rows, jnp.float32) if weights is None else weights
        metrics_for, _ = hoisted(batch_metrics, (state, features, labels), counts)

        def cell(place: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, Metrics]:
            slot, group = place
            inside = jnp.any(keys.slots == slot, axis=1) & (keys.groups == group) & (counts > 0)
            return jnp.any(inside), split_host_metrics(metrics_for(inside.astype(jnp.float32)))[0]

        places = jnp.repeat(keys.cells, groups), jnp.tile(jnp.arange(groups), keys.cells.shape[0])
        found = jax.lax.map(cell, places, batch_size=groups * _together(keys.cells.shape[0], groups * rows))
        new = Table(*jax.tree.map(lambda leaf: leaf.reshape(-1, groups, *leaf.shape[1:]), found))
        old = jax.tree.map(lambda leaf: leaf.at[keys.cells].get(mode="fill", fill_value=0), table)
        both = _joined(old, new)
        table = jax.tree.map(lambda leaf, rows: leaf.at[keys.cells].set(rows, mode="drop"), table, both)
        return table, dict(split_host_metrics(metrics_for(counts))[1])

    return fold


def _together(cells: int, each: int) -> int:
    """Returns the number of cells that are computed at once. It is a power of two, like the number of cells."""
    return min(cells, 1 << max(0, (_TOGETHER // max(each, 1)).bit_length() - 1))


def empty(batch_metrics: Callable[..., Metrics], slices: int, groups: int, *batch: Any) -> Table:
    """Returns a table without examples. `batch` has state, features, labels and weights."""
    shapes = jax.eval_shape(lambda *args: split_host_metrics(batch_metrics(*args))[0], *batch)
    metrics = jax.tree.map(lambda leaf: np.zeros((slices, groups, *leaf.shape), leaf.dtype), shapes)
    return Table(np.zeros((slices, groups), bool), metrics)


def widened(table: Table, slices: int) -> Table:
    """Returns the table with room for more slices. It is made on the host, because it seldom grows."""

    def wide(leaf: Any) -> Any:
        return np.concatenate([leaf, np.zeros((slices - leaf.shape[0], *leaf.shape[1:]), leaf.dtype)])

    return jax.tree.map(wide, jax.device_get(table))


@jax.jit
def without_each_group(table: Table) -> tuple[Table, Table]:
    """Returns the metrics of all groups together, [slices], and of all groups except each one, [groups, slices]."""
    by_group: Table = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), table)
    nothing: Table = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), by_group)

    def add(before: Table, group: Table) -> tuple[Table, Table]:
        return _joined(before, group), before

    everything, before = jax.lax.scan(add, nothing, by_group)
    _, behind = jax.lax.scan(add, nothing, by_group, reverse=True)
    return everything, _joined(before, behind)


def _joined(left: Table, right: Table) -> Table:
    """Returns both tables joined. A slice in only one table keeps its values, because zeros may not be neutral."""
    if not left.metrics:  # the model has no metrics of examples
        return Table(left.seen | right.seen, {})
    merge: Callable[..., Metrics] = merge_metrics
    for _ in range(left.seen.ndim):
        merge = jax.vmap(merge)
    merged = merge(left.metrics, right.metrics)

    def chosen(one: jax.Array, other: jax.Array, together: jax.Array) -> jax.Array:
        def wide(seen: jax.Array) -> jax.Array:
            return seen.reshape(seen.shape + (1,) * (one.ndim - seen.ndim))

        return jnp.where(wide(left.seen & right.seen), together, jnp.where(wide(left.seen), one, other))

    return Table(left.seen | right.seen, jax.tree.map(chosen, left.metrics, right.metrics, merged))
