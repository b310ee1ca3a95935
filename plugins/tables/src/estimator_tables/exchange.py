"""The messages by which each device receives its rows: functions of one device, for use inside `jax.shard_map`.

Each device requests the distinct rows that it needs from their owners. Messages have a fixed size: space for `room`
rows from each device to each other one. If an owner receives more requests, there are more rounds. All devices make the
same number of rounds.
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
        rows: int32[n], the requested rows, ascending and distinct. Unused places hold the number of rows of the table.
        places: int32[n], the position of each id in `rows`.
        starts: int32[parts], the position where the rows of each owner start.
        counts: int32[parts], the number of rows of each owner.
        most: int32, the largest count over all devices.
    """

    rows: jax.Array
    places: jax.Array
    starts: jax.Array
    counts: jax.Array
    most: jax.Array


def questions(ids: jax.Array, split: Split) -> Questions:
    """Returns the distinct rows among some ids, int32[n], by owner. Ids out of range are ignored."""
    ids = jnp.where((ids >= 0) & (ids < split.rows), ids, split.rows)
    rows, places = jnp.unique(ids, size=ids.size, fill_value=split.rows, return_inverse=True)
    bounds = jnp.searchsorted(rows, jnp.arange(split.count + 1, dtype=jnp.int32) * split.part).astype(jnp.int32)
    counts = bounds[1:] - bounds[:-1]
    return Questions(rows, places.reshape(-1), bounds[:-1], counts, lax.pmax(jnp.max(counts), split.axes))


def answers(part: jax.Array | CachedTable, asked: Questions, split: Split, room: int) -> jax.Array:
    """Returns the requested rows, [n, columns], with zeros in unused places.

    Args:
        part: the rows of the table on this device.
        asked: the requests of this device.
        split: the split of the table.
        room: the number of rows of a message.
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
    """Returns what all devices send to this one about its rows: each row once, with the sum of the values.

    Args:
        values: [n, columns], one row for each of `asked.rows`.
        asked: the rows for which this device has values. No owner has more of them than `room`.
        split: the split of the table.
        room: the number of rows of a message.

    Returns:
        The row numbers within the part of this device, int32[room * parts], and the values. Unused places hold the size
        of the part.
    """
    places, rows = _message(asked, split, room, 0)
    rows = lax.all_to_all(rows, split.axes, 0, 0).reshape(-1)
    sent = values.at[places].get(mode="fill", fill_value=0)
    sent = lax.all_to_all(sent, split.axes, 0, 0).reshape(-1, values.shape[1])
    return summed_by_row(rows, sent, split.part)


def _message(asked: Questions, split: Split, room: int, first: int | jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the rows for each owner, from its `first` one on.

    They are the positions in `asked.rows` and the row numbers within the part, both int32[parts, room]. Unused ones are
    out of range.
    """
    within = first + jnp.arange(room, dtype=jnp.int32)[None]
    places = jnp.where(within < asked.counts[:, None], asked.starts[:, None] + within, asked.rows.size)
    offsets = jnp.arange(split.count, dtype=jnp.int32)[:, None] * split.part
    rows = asked.rows.at[places].get(mode="fill", fill_value=split.rows)
    return places, jnp.where(places < asked.rows.size, rows - offsets, split.part)
