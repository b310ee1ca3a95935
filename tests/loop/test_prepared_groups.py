"""Tests of groups that are drawn ahead of time: every batch arrives once and in order, whatever the room for them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core._loop.batches import Batches
from estimator_core._loop.time_spent import TimeSpent


class Source(Iterator[Any]):
    """Numbered batches, of which those in `odd` have another shape. A draw after its end fails."""

    def __init__(self, count: int, odd: frozenset[int] = frozenset(), error_at: int | None = None) -> None:
        self.count, self.odd, self.error_at = count, odd, error_at
        self.drawn, self._ended = 0, False

    def __next__(self) -> Any:
        assert not self._ended, "asked after its end"
        if self.drawn == self.error_at:
            raise ValueError("a broken record")
        if self.drawn == self.count:
            self._ended = True
            raise StopIteration
        self.drawn += 1
        rows = 1 if self.drawn in self.odd else 2
        return SimpleNamespace(features=np.full(rows, self.drawn), labels=None, weights=None, size=rows)


def batches_of(source: Source, k: int, *, alone: bool = True) -> Batches:
    batches = Batches(source, np.stack, TimeSpent(), alone=alone)
    batches.group(k)
    return batches


def numbers(dispatch: Any) -> list[int]:
    features = dispatch.features if dispatch.steps > 1 else [dispatch.features]
    return [int(one[0]) for one in features]


@given(
    count=st.integers(0, 30),
    odd=st.frozensets(st.integers(1, 30), max_size=3),
    k=st.integers(1, 5),
    calls=st.lists(st.booleans() | st.integers(1, 8) | st.just("peek"), min_size=1, max_size=60),
)
def test_every_batch_comes_once_and_in_order(count: int, odd: frozenset[int], k: int, calls: list[Any]) -> None:
    batches = batches_of(Source(count, odd), k)
    seen: list[int] = []
    for call in calls:
        if call == "peek":
            ahead = [int(batch.features[0]) for batch in batches.peek(3)]
            assert ahead == list(range(len(seen) + 1, min(len(seen) + 3, count) + 1))
            continue
        if isinstance(call, bool):
            batches.prepare(8 if call else 1)
            continue
        dispatch = batches.draw(call)
        if dispatch is None:
            assert seen == list(range(1, count + 1))
            continue
        assert dispatch.steps in (1, k)
        assert dispatch.steps <= call
        assert len({bool(number in odd) for number in numbers(dispatch)}) == 1
        seen += numbers(dispatch)
    assert seen == list(range(1, len(seen) + 1))


def test_a_group_is_drawn_before_it_is_asked_for() -> None:
    source = Source(20)
    batches = batches_of(source, 4)
    batches.prepare(8)
    batches.prepare(8)
    assert source.drawn == 4
    assert numbers(batches.draw(10)) == [1, 2, 3, 4]


def test_where_it_must_not_be_it_is_not() -> None:
    source = Source(20)
    batches_of(source, 4, alone=False).prepare(8)
    batches_of(source, 4).prepare(3)
    assert source.drawn == 0


@pytest.mark.parametrize("prepares", [True, False])
@pytest.mark.parametrize("k", [1, 4])
def test_an_error_of_the_input_comes_after_the_batches_before_it(prepares: bool, k: int) -> None:
    batches = batches_of(Source(20, error_at=6), k)
    seen: list[int] = []
    while (dispatch := batches.draw(4)) is not None:
        batches.raise_error()  # not yet
        seen += numbers(dispatch)
        if prepares:
            batches.prepare(8)
    assert seen == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="a broken record"):
        batches.raise_error()


def test_an_input_that_is_broken_at_once_says_so() -> None:
    with pytest.raises(ValueError, match="a broken record"):
        batches_of(Source(20, error_at=0), 4).first()
    assert batches_of(Source(0), 4).first() is None


def test_among_several_processes_an_error_comes_at_once() -> None:
    source = Source(20, error_at=6)
    batches = batches_of(source, 4, alone=False)
    assert numbers(batches.draw(4)) == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="a broken record"):
        batches.draw(4)


def test_a_prepared_group_is_given_up_after_a_single_draw() -> None:
    batches = batches_of(Source(20), 4)
    batches.prepare(8)
    assert numbers(batches.draw(2)) == [1], "four do not fit into two steps"
    assert numbers(batches.draw(10)) == [2, 3, 4, 5]
    assert numbers(batches.draw(10)) == [6, 7, 8, 9]


@pytest.mark.parametrize("k", [1, 4])
def test_an_input_that_has_ended_is_not_asked_again(k: int) -> None:
    batches = batches_of(Source(2), k)
    assert [numbers(batches.draw(8)) for _ in range(2)] == [[1], [2]]
    assert [batches.draw(8) for _ in range(3)] == [None] * 3
    batches.raise_error()  # the error of the input, if it were drawn
