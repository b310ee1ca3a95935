"""How many values of a feature training saw: texts are counted by their types, lists one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimator_core._inputs.seen import SeenFeatures


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
