"""A vocabulary on the device: it maps ids to rows of a table, with buckets of a hash.

An id belongs to one bucket. A bucket has slots for ids with a row, and further slots for candidates, which are only
counted. The slot determines the row: bucket * `ROWS_PER_BUCKET` + slot. No id belongs to bucket 0, whose first row is
shared by all ids without their own row.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

#: The number of slots with a row, and of slots for candidates, in a bucket.
ROWS_PER_BUCKET = 16
CANDIDATES_PER_BUCKET = 16
#: The row of ids without their own row.
DEFAULT_ROW = 0
_LATEST = 2**31 - 1


class Vocabulary(NamedTuple):
    """The state of a vocabulary.

    Attributes:
        ids: int32[buckets, slots, 2], the words of the id in each slot.
        counts: int32[buckets, slots], the number of occurrences of the id; 0: the slot is empty.
        seen: int32[buckets, slots], the clock of the last occurrence.
        clock: int32, the number of training batches.
    """

    ids: jax.Array
    counts: jax.Array
    seen: jax.Array
    clock: jax.Array


class _Groups(NamedTuple):
    """The distinct ids of a batch, ordered by bucket. The bucket of unused places is the one after the last.

    Attributes:
        buckets: int32[n], the bucket of each id.
        words: int32[n, 2], the words of each id.
        occurrences: int32[n], the number of occurrences of each id in the batch.
        of: int32[n], the position in these arrays of each id of the batch.
    """

    buckets: jax.Array
    words: jax.Array
    occurrences: jax.Array
    of: jax.Array


def is_id(words: jax.Array) -> jax.Array:
    """Returns whether there is an id. -1 means no id."""
    return ~jnp.all(words == -1, axis=-1)


def known_rows(vocabulary: Vocabulary, words: jax.Array) -> jax.Array:
    """Returns the rows of ids, int32[...]. The row is `DEFAULT_ROW` for unknown ids, and -1 if there is no id.

    Args:
        vocabulary: the state of the vocabulary.
        words: the words of the ids, int32[..., 2].
    """
    buckets = _bucket_of(words, vocabulary.ids.shape[0])
    ids, counts = (array[:, :ROWS_PER_BUCKET][buckets] for array in (vocabulary.ids, vocabulary.counts))
    hits = jnp.all(ids == words[..., None, :], axis=-1) & (counts > 0)
    rows = buckets * ROWS_PER_BUCKET + jnp.argmax(hits, axis=-1).astype(jnp.int32)
    return jnp.where(is_id(words), jnp.where(hits.any(axis=-1), rows, DEFAULT_ROW), -1)


def grown(
    vocabulary: Vocabulary, words: jax.Array, *, admit_at: int, max_age: int
) -> tuple[Vocabulary, jax.Array, jax.Array]:
    """Counts the ids of a training batch, and admits those that occurred often enough.

    An admitted id takes an empty slot of its bucket. If there is none, it takes the slot of the id that has been absent
    longest, if that id last occurred more than `max_age` batches ago. Otherwise it waits as a candidate.

    Args:
        vocabulary: the state of the vocabulary.
        words: the words of the ids, int32[n, 2].
        admit_at: the number of occurrences from which an id has a row.
        max_age: the number of batches after which an absent id may lose its row.

    Returns:
        The new state, the rows in the form of `known_rows`, int32[n], and whether each row was assigned to its id now,
        bool[n].
    """
    size, slots = vocabulary.counts.shape
    now = vocabulary.clock + 1
    groups = _grouped(words, size)
    used = groups.buckets < size
    counts = vocabulary.counts.at[groups.buckets].get(mode="fill", fill_value=0)
    ids = vocabulary.ids.at[groups.buckets].get(mode="fill", fill_value=0)
    hits = jnp.all(ids == groups.words[:, None], axis=-1) & (counts > 0) & used[:, None]
    found, slot = hits.any(axis=1), jnp.argmax(hits, axis=1).astype(jnp.int32)
    before = jnp.sum(jnp.where(hits, counts, 0), axis=1)
    total = jnp.minimum(before, _LATEST - groups.occurrences) + groups.occurrences
    seen = vocabulary.seen.at[jnp.where(found, groups.buckets, size), slot].set(now, mode="drop")
    last = seen.at[groups.buckets].get(mode="fill", fill_value=0)

    has_row = found & (slot < ROWS_PER_BUCKET)
    free = (counts == 0) | (now - last > max_age)
    wants = used & ~has_row & (total >= admit_at)
    admitted, row_slot = _dealt(wants, groups.buckets, free, counts, last, 0, ROWS_PER_BUCKET)
    waits = used & ~found & ~admitted
    free = (counts == 0) | (last < now)
    waiting, candidate_slot = _dealt(waits, groups.buckets, free, counts, last, ROWS_PER_BUCKET, slots)

    target = jnp.where(admitted, row_slot, jnp.where(waiting, candidate_slot, slot))
    there = jnp.where(admitted | waiting | found, groups.buckets, size), target
    left = jnp.where(admitted & found, groups.buckets, size), slot
    new = Vocabulary(
        vocabulary.ids.at[there].set(groups.words, mode="drop"),
        vocabulary.counts.at[there].set(total, mode="drop").at[left].set(0, mode="drop"),
        seen.at[there].set(now, mode="drop"),
        now,
    )
    rows = jnp.where(admitted | has_row, groups.buckets * ROWS_PER_BUCKET + target, DEFAULT_ROW)
    return new, jnp.where(is_id(words), rows[groups.of], -1), admitted[groups.of] & is_id(words)


def _bucket_of(words: jax.Array, size: int) -> jax.Array:
    """Returns the bucket of each id, in [1, size)."""
    high, low = (words[..., place].astype(jnp.uint32) for place in (0, 1))
    return (1 + _mixed(low ^ _mixed(high + jnp.uint32(0x9E3779B9))) % jnp.uint32(size - 1)).astype(jnp.int32)


def _mixed(word: jax.Array) -> jax.Array:
    """Mixes the bits of words.

    Source: the finaliser of MurmurHash3.
    """
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)


def _grouped(words: jax.Array, size: int) -> _Groups:
    count = words.shape[0]
    buckets = jnp.where(is_id(words), _bucket_of(words, size), size)
    places = jnp.arange(count, dtype=jnp.int32)
    buckets, high, low, order = jax.lax.sort((buckets, words[:, 0], words[:, 1], places), num_keys=3)
    ordered = jnp.stack([high, low], axis=1)
    starts = jnp.any(ordered != jnp.roll(ordered, 1, axis=0), axis=1) | (buckets != jnp.roll(buckets, 1))
    group = jnp.cumsum(starts | (places == 0)).astype(jnp.int32) - 1
    return _Groups(
        jnp.full(count, size, jnp.int32).at[group].set(buckets),
        jnp.zeros((count, 2), jnp.int32).at[group].set(ordered),
        jnp.zeros(count, jnp.int32).at[group].add(1),
        jnp.zeros(count, jnp.int32).at[order].set(group),
    )


def _dealt(
    wants: jax.Array, buckets: jax.Array, free: jax.Array, counts: jax.Array, last: jax.Array, start: int, stop: int
) -> tuple[jax.Array, jax.Array]:
    """Assigns the free slots of each bucket from `start` to `stop` to the groups that want one.

    Returns whether each group has one, and which. Empty slots come first, then the oldest.
    """
    if start == stop:
        return jnp.zeros_like(wants), jnp.zeros_like(buckets)
    age = jnp.where(free, jnp.where(counts == 0, -1, last), _LATEST)[:, start:stop]
    order = jnp.argsort(age, axis=1, stable=True)
    so_far = jnp.cumsum(wants)
    rank = so_far - 1 - (so_far - wants)[jnp.searchsorted(buckets, buckets)]
    slot = jnp.take_along_axis(order, jnp.clip(rank, 0, stop - start - 1)[:, None], axis=1)[:, 0] + start
    return wants & (rank < jnp.sum(free[:, start:stop], axis=1)), slot.astype(jnp.int32)
