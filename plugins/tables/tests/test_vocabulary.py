"""The vocabulary on the device follows the rules, for any sequence of batches."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counted import Counted, as_device

from estimator_tables.vocabulary import (
    CANDIDATES_PER_BUCKET,
    ROWS_PER_BUCKET,
    Vocabulary,
    _bucket_of,  # pyright: ignore[reportPrivateUsage]
    grown,
    known_rows,
)


def empty(buckets: int, admit_at: int) -> Vocabulary:
    shape = buckets, ROWS_PER_BUCKET + CANDIDATES_PER_BUCKET * (admit_at > 1)
    return Vocabulary(
        jnp.zeros((*shape, 2), jnp.int32), jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.int32), jnp.int32(0)
    )


@pytest.mark.parametrize(("admit_at", "max_age"), [(1, 3), (2, 2), (4, 1), (2, 1000)])
def test_as_counted_one_by_one(admit_at: int, max_age: int) -> None:
    """There are few buckets and many ids, so that slots run out, rows are evicted and candidates are forgotten."""
    rng = np.random.default_rng(admit_at)
    pool = np.concatenate([rng.integers(-(2**62), 2**62, 150), np.arange(30), [2**32, 2**32 + 7, -2]])
    bucket_of = dict(zip(pool.tolist(), np.asarray(_bucket_of(as_device(pool), 4)).tolist(), strict=True))
    counted, vocabulary = Counted(4, admit_at, max_age), empty(4, admit_at)
    step = jax.jit(lambda state, words: grown(state, words, admit_at=admit_at, max_age=max_age))
    evicted, owners = 0, {}
    for number in range(25):
        part = pool[(number // 6 * 40) % 120 :][:90]  # ids appear and disappear
        ids = rng.choice(part, 64)
        ids[:5] = -1
        known = dict(zip(ids.tolist(), np.asarray(known_rows(vocabulary, as_device(ids))).tolist(), strict=True))
        vocabulary, rows, fresh = step(vocabulary, as_device(ids))
        assert np.asarray(rows).tolist() == counted.batch(ids, bucket_of), number
        for each, row, new in zip(ids.tolist(), np.asarray(rows).tolist(), np.asarray(fresh).tolist(), strict=True):
            assert new == (row > 0 and known[each] != row)
            if row > 0:
                evicted += new and row in owners and owners[row] != each
                owners[row] = each
        assert np.array_equal(known_rows(vocabulary, as_device(ids)), rows)
    assert evicted > 10 or max_age == 1000


def test_unknown_ids_have_the_default_row_and_no_id_has_none() -> None:
    ids = np.array([[7, -1], [2**40, 3]])
    assert np.asarray(known_rows(empty(4, 1), as_device(ids))).tolist() == [[0, -1], [0, 0]]


def test_a_count_does_not_wrap() -> None:
    ids = as_device(np.array([5, 5]))
    step = jax.jit(lambda state, words: grown(state, words, admit_at=1, max_age=9))
    vocabulary, *_ = step(empty(4, 1), ids)
    full = vocabulary._replace(counts=jnp.where(vocabulary.counts > 0, 2**31 - 2, 0))
    counts = step(full, ids)[0].counts
    assert int(counts.max()) == 2**31 - 1
