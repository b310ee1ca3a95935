"""Tests of the number of feature values that training saw: texts are counted by their types, and lists one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimator_core._inputs.seen_features import SeenFeatures


@pytest.mark.parametrize(
    ("rows", "places"),
    [
        ([b"a", b"bcd"], 1),
        (["a", None], 1),
        ([None, None], 1),
        ([b"a", [b"b", b"c"]], 2),
        ([None, ["b", "c", "d"], "e"], 3),
        ([[], [1]], 1),
    ],
)
def test_the_most_values_of_a_row_count(rows: list[Any], places: int) -> None:
    array = np.empty(len(rows), object)
    array[:] = rows
    seen = SeenFeatures()
    seen.apply({"words": array})
    assert seen.places == {"words": places}


@pytest.mark.parametrize(
    ("rows", "dtype"),
    [
        ([[], [np.float32(0.5), np.float32(1.5)]], "float32"),
        ([3, None], "int64"),
        ([True, None], "bool"),
        ([1, 2.5], "float64"),
        (["a", float("nan")], "string"),
        ([[], ["a"]], "string"),
        ([None, []], "string"),
    ],
)
def test_numbers_among_objects_are_numbers(rows: list[Any], dtype: str) -> None:
    array = np.empty(len(rows), object)
    array[:] = rows
    seen = SeenFeatures()
    seen.apply({"x": array})
    assert seen.dtypes == {"x": dtype}


def test_rows_without_a_value_change_no_dtype() -> None:
    seen = SeenFeatures()
    seen.apply({"x": np.array([1, None], object)})
    seen.apply({"x": np.array([None, None], object)})
    assert seen.dtypes == {"x": "int64"}


def test_later_whole_numbers_among_objects_leave_fractions_possible() -> None:
    seen = SeenFeatures()
    for rows in ([1.5, None], [2, None]):
        seen.apply({"x": np.array(rows, object)})
    assert seen.dtypes == {"x": "float64"}


def test_lists_of_lists_among_objects_are_no_numbers() -> None:
    nested = np.empty((1, 1), object)
    nested[0, 0] = [[1], [2, 3]]
    seen = SeenFeatures()
    seen.apply({"x": nested})
    assert seen.dtypes == {"x": "string"}
