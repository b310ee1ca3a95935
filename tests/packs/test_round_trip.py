"""Tests that any part of an array is read from packs bit for bit, and that a damaged byte is found and named."""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cuts import Cut, cuts, opened, written
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_core._packs.boxes import chunks, tile
from estimator_core._packs.fetch import read_boxes, verify
from estimator_core._storage.contract import Data
from estimator_core._storage.local import LocalStorage
from estimator_core.errors import CheckpointCorruptError

pytestmark = pytest.mark.usefixtures("small_chunks")
QUICK = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large, HealthCheck.too_slow],
)
trees = st.dictionaries(st.text(min_size=1, max_size=8), cuts(), min_size=1, max_size=4)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@QUICK
@given(named=trees, data=st.data())
def test_any_part_comes_back_bit_for_bit(named: dict[str, Cut], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        found = opened(written(Path(directory, "packs"), named), named)
        assert all(same_bits(np.asarray(found[path]), cut.array) for path, cut in named.items())
        wanted = []
        for path, cut in named.items():
            bounds = [data.draw(st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted)) for n in cut.array.shape]
            wanted.append((path, tuple((a, b) for a, b in bounds)))
        for (path, box), part in zip(wanted, read_boxes([(found[p], box) for p, box in wanted]), strict=True):
            assert same_bits(part, named[path].array[tuple(slice(*bounds) for bounds in box)])
        verify(found.values())


@QUICK
@given(named=trees, where=st.integers(0, 10**9), mask=st.integers(1, 255))
def test_a_damaged_byte_is_found_and_named(named: dict[str, Cut], where: int, mask: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        packs = written(Path(directory, "packs"), named)
        entry = packs.entries[where % 3]
        file = Path(directory, "packs", entry.name)
        data = bytearray(file.read_bytes())
        at = where // 3 % len(data)
        hit = [piece for name, piece in packs.pieces() if name == entry.name and piece.offset <= at < piece.end]
        data[at] ^= mask
        file.write_bytes(data)
        with pytest.raises(CheckpointCorruptError) as caught:
            verify(opened(packs, named).values())
        assert entry.name in str(caught.value)
        assert len(hit) == (at < entry.bytes - entry.index)
        assert all(f"{piece.item} {piece.path!r}" in str(caught.value) for piece in hit)


@QUICK
@given(named=trees, parts=st.integers(1, 4))
def test_shares_verify_each_byte_once(named: dict[str, Cut], parts: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        packs = written(Path(directory, "packs"), named)
        arrays = opened(packs, named)
        read: list[tuple[str, int, int]] = []

        class Counting(LocalStorage):
            def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[Data]:
                read.extend((key, byte, byte + 1) for begin, end in ranges for byte in range(begin, end))
                return super().get_ranges(key, ranges)

        counting = type(packs)(
            storage=Counting(Path(directory, "packs")), prefix="", where="here", entries=packs.entries
        )
        arrays = opened(counting, named)
        read.clear()
        for part in range(parts):
            verify(arrays.values(), part=part, parts=parts)
        everything = {
            (entry.name, byte, byte + 1) for entry in packs.entries for byte in range(entry.bytes - entry.index)
        }
        assert set(read) == everything


@given(shape=st.lists(st.integers(0, 7), max_size=4).map(tuple), itemsize=st.sampled_from([1, 2, 4, 8, 16]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_chunks_lie_one_after_the_other_and_are_small(shape: tuple[int, ...], itemsize: int) -> None:
    array = np.arange(math.prod(shape)).reshape(shape)
    boxes = list(chunks(shape, itemsize))
    parts = [array[tuple(slice(*bounds) for bounds in box)].reshape(-1) for box in boxes]
    assert np.concatenate(parts).tolist() == array.reshape(-1).tolist()
    assert all(part.size * itemsize <= 48 or part.size == 1 for part in parts)
    assert not array.size or tile(shape, boxes)


@given(cut=cuts(), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_boxes_that_lack_or_repeat_an_element_do_not_tile(cut: Cut, data: st.DataObject) -> None:
    boxes = [box for box, _ in cut.boxes]
    if not cut.array.size:
        return
    assert tile(cut.array.shape, boxes)
    one = data.draw(st.integers(0, len(boxes) - 1))
    assert not tile(cut.array.shape, boxes[:one] + boxes[one + 1 :])
    assert not tile(cut.array.shape, [*boxes, boxes[one]])
