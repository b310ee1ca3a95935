"""Tests of the comparison of two values."""

import numpy as np
import pytest

from estimator_migration.proving.compare import compare
from estimator_migration.proving.computed import Computed, Evaluated


def side(prediction: object) -> Computed:
    evaluated = Evaluated(metrics={}, predictions={"y": np.asarray(prediction)})
    nothing = {"losses": (), "gradients": {}, "weights": (), "random": False, "trainable": frozenset[str]()}
    return Computed(start=evaluated, end=evaluated, **nothing)


@pytest.mark.parametrize(
    ("here", "there", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], 0.0),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([1.0, np.inf], [1.0, -np.inf], np.inf),
        ([0.01], [0.02], 0.01),
        ([99.0, 0.0], [100.0, 0.0], 0.01),
        ([1.0], [1.0, 2.0], np.inf),
        (["a", "b"], [b"a", b"c"], 0.5),
        ([1, 2], [1, 3], 1 / 3),
    ],
)
def test_difference(here: object, there: object, difference: float) -> None:
    first, last = compare(side(here), side(there), {})
    assert first.difference == pytest.approx(difference)
    assert (first.stage, last.stage) == ("predictions at the start", "predictions at the end")


def test_names_are_those_there() -> None:
    first, *others = compare(
        side([1.0]),
        Computed(
            start=Evaluated(metrics={}, predictions={"z": np.ones(1)}),
            end=Evaluated(metrics={}, predictions={"z": np.ones(1)}),
            losses=(),
            gradients={},
            weights=(),
            random=False,
            trainable=frozenset({"not_trained"}),
        ),
        {"y": "z"},
    )
    assert (first.name, first.note) == ("not_trained", "trained there, not here")
    assert [each.difference for each in others] == [0.0, 0.0]
