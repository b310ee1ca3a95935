"""What devices send each other so that each gets its rows: functions of one device, for use inside `jax.shard_map`.

Each device asks the owners of the distinct rows it needs. Messages have a fixed size: room for `room` rows from each
device to each other. If an owner is asked for more, there are more rounds. All devices take as many.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from estimator_tables.cache import CachedTable, found_rows
from estimator_tables.rows import summed_by_row
from estimator_tables.split import Split


class Questions(NamedTuple):
    """The requests of one device.

    Attributes:
        rows: int32[n], ascending and distinct; unused places hold the number of rows.
        places: int32[n], where each id is in `rows`.
        starts: int32[parts], where the rows of each owner begin.
        counts: int32[parts], how many there are.
        most: int32, the largest count of all devices.
    """

    rows: jax.Array
    places: jax.Array
    starts: jax.Array
    counts: jax.Array
    most: jax.Array


def questions(ids: jax.Array, split: Split) -> Questions:
    """The distinct rows among some ids, int32[n], by owner. Ids out of range are none."""
    ids = jnp.where((ids >= 0) & (ids < split.rows), ids, split.rows)
    rows, places = jnp.unique(ids, size=ids.size, fill_value=split.rows, return_inverse=True)
    bounds = jnp.searchsorted(rows, jnp.arange(split.count + 1, dtype=jnp.int32) * split.part).astype(jnp.int32)
    counts = bounds[1:] - bounds[:-1]
    return Questions(rows, places.reshape(-1), bounds[:-1], counts, lax.pmax(jnp.max(counts), split.axes))


def answers(part: jax.Array | CachedTable, asked: Questions, split: Split, room: int) -> jax.Array:
    """The asked rows, [n, columns]; zeros in unused places.

    Args:
        part: this device's rows of the table.
        asked: what it asks.
        split: of the table.
        room: rows of a message.
    """

    def one_round(number: int | jax.Array, found: jax.Array) -> jax.Array:
        places, rows = _message(asked, split, room, number * room)
        wanted = lax.all_to_all(rows, split.axes, 0, 0)
        answer = lax.all_to_all(found_rows(part, wanted), split.axes, 0, 0)
        return found.at[places].set(answer, mode="drop")

    nothing = jnp.zeros((asked.rows.size, part.shape[1]), part.dtype)
    if room >= asked.rows.size:
        return one_round(0, nothing)
    return lax.fori_loop(0, -(-asked.most // room), one_round, nothing)


def delivered(values: jax.Array, asked: Questions, split: Split, room: int) -> tuple[jax.Array, jax.Array]:
    """What all devices send to this one about its rows, each row once, with the sum of the values.

    Args:
        values: [n, columns], by `asked.rows`.
        asked: the rows that this device has values for; no owner has more of them than `room`.
        split: of the table.
        room: rows of a message.

    Returns:
        Numbers within this device's part, int32[room * parts], and values; unused places hold the part's size.
    """
    places, rows = _message(asked, split, room, 0)
    rows = lax.all_to_all(rows, split.axes, 0, 0).reshape(-1)
    sent = values.at[places].get(mode="fill", fill_value=0)
    sent = lax.all_to_all(sent, split.axes, 0, 0).reshape(-1, values.shape[1])
    return summed_by_row(rows, sent, split.part)


def _message(asked: Questions, split: Split, room: int, first: int | jax.Array) -> tuple[jax.Array, jax.Array]:
    """The rows for each owner from its `first` one on: their places in `asked.rows`, and their numbers within its part,
    both int32[parts, room]. Unused ones are out of range.
    """
    within = first + jnp.arange(room, dtype=jnp.int32)[None]
    places = jnp.where(within < asked.counts[:, None], asked.starts[:, None] + within, asked.rows.size)
    offsets = jnp.arange(split.count, dtype=jnp.int32)[:, None] * split.part
    rows = asked.rows.at[places].get(mode="fill", fill_value=split.rows)
    return places, jnp.where(places < asked.rows.size, rows - offsets, split.part)
