"""Tests of vocabularies that are capped by frequency."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estimator_canned_tabular as tab
from estimator_core.errors import ArgumentError


@given(
    batches=st.lists(st.lists(st.text("abc", max_size=2), max_size=20), max_size=6),
    max_size=st.none() | st.integers(1, 8),
    min_count=st.integers(1, 4),
)
def test_the_most_frequent_come_first_and_no_rarer_one_is_in(
    batches: list[list[str]], max_size: int | None, min_count: int
) -> None:
    counts = Counter(word for batch in batches for word in batch if word)
    enough = {word for word, count in counts.items() if count >= min_count}
    if not enough:
        with pytest.raises(ArgumentError, match=f"No value occurs {min_count} times"):
            tab.frequent_values(batches, max_size=max_size, min_count=min_count)
        return
    found = tab.frequent_values(batches, max_size=max_size, min_count=min_count)
    assert len(found) == len(set(found)) == min(len(enough), max_size or len(enough))
    assert list(found) == sorted(found, key=lambda word: (-counts[word], word))
    left_out = enough - set(found)
    assert all(counts[word] <= counts[found[-1]] for word in left_out)


def test_every_kind_of_value() -> None:
    assert tab.frequent_values([np.array([b"x", b"y", b"x"]), np.array(["x", None, ""], object)]) == ("x", "y")
    assert tab.frequent_values([np.array([[3, 3], [-1, 2]])]) == (3, 2)
    assert tab.frequent_values([np.array(["x", float("nan"), "y", "x"], object)]) == ("x", "y")


@pytest.mark.parametrize(
    ("batches", "options", "words"),
    [
        ([["a"]], {"max_size": 0}, "max_size must be at least 1"),
        ([["a"]], {"min_count": 0}, "min_count must be at least 1"),
        ([np.array([0.5])], {}, "strings or integers, given: float64"),
        ([["a"], [1]], {}, "both numbers and strings"),
        ([], {}, "No value occurs 1 times or more, among 0 different values"),
    ],
)
def test_what_is_refused(batches: Any, options: dict[str, int], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        tab.frequent_values(batches, **options)


def test_a_column_takes_the_vocabulary() -> None:
    words = tab.frequent_values([["b", "a", "b"]])
    column = tab.categorical_column_with_vocabulary_list("w", words)
    assert column.num_buckets == 2
