"""Tests of large transfers: combined requests, transfers in pieces, and log lines."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core.storage import ShortReadError, StorageError
from estimator_storage import transfers
from estimator_storage.transfers import NEAR, PART, Outgoing, Progress, read_ranges, spans_of

DATA = bytes(range(251)) * 40
RANGES = st.lists(st.tuples(st.integers(0, len(DATA)), st.integers(0, len(DATA))).map(lambda pair: tuple(sorted(pair))))


@given(RANGES.filter(lambda ranges: any(begin < end for begin, end in ranges)), st.integers(1, 5_000))
def test_ranges_are_those_of_the_object(ranges, part):
    asked = []

    def fetch(begin, end):
        asked.append((begin, end))
        return DATA[begin:end]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfers, "PART", part)
        patch.setattr(transfers, "NEAR", 100)
        found = read_ranges("a", ranges, fetch)
    assert [bytes(one) for one in found] == [DATA[begin:end] for begin, end in ranges]
    assert all(0 < end - begin <= part for begin, end in asked)
    assert sum(end - begin for begin, end in asked) <= len(DATA)


def test_what_lies_near_is_asked_for_together():
    assert spans_of([(0, 10), (10 + NEAR, 20 + NEAR)]) == [(0, 20 + NEAR)]
    assert spans_of([(0, 10), (11 + NEAR, 20 + NEAR)]) == [(0, 10), (11 + NEAR, 20 + NEAR)]
    assert spans_of([(0, 100), (5, 10), (100, 101)]) == [(0, 101)]


def test_a_short_object_is_said():
    with pytest.raises(ShortReadError, match="a ends before byte 99999"):
        read_ranges("a", [(0, 5), (10, 99_999)], lambda begin, end: DATA[begin:end])


def test_a_large_chunk_goes_out_in_pieces():
    sizes = [len(piece) for piece in Outgoing([bytes(PART + 1), b"", b"abc"], PART + 4, "a")]
    assert sizes == [PART, 1, 3]


@pytest.mark.parametrize(("size", "given"), [(2, "3 or more"), (4, "3")])
def test_wrong_sizes_are_refused_with_both(size, given):
    with pytest.raises(StorageError, match=f"a should have {size} bytes, but {given} were supplied"):
        list(Outgoing([b"1", b"23"], size, "a"))


def test_a_long_transfer_is_logged_every_ten_seconds(caplog):
    now = [100.0]
    progress = Progress("s3://b/k sent", 8_000_000, clock=lambda: now[0])
    with caplog.at_level(logging.INFO, "estimator_storage"):
        for _ in range(8):
            now[0] += 4
            progress.add(1_000_000)
    assert caplog.messages == [
        "s3://b/k sent: 3 of 8 MB, 0.2 MB/s",
        "s3://b/k sent: 6 of 8 MB, 0.2 MB/s",
    ]
