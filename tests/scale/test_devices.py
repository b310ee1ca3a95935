"""Placements on 1, 2, 4 and 8 devices of one process: the same numbers, and each device holds its part only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scale_runs import TOLERANCE, assert_same, run_worker, seen

SHARDED = ["data_2", "full_8", "zero1_8", "tensor_4", "mixed", "four_a_dispatch"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("devices")
    return run_worker("devices_worker.py", str(folder), devices=8), folder


@pytest.mark.parametrize(
    ("case", "reference"),
    [*((case, "one") for case in SHARDED), ("accumulated_4", "accumulated"), ("float16_full_4", "float16")],
)
def test_the_same_curve_weights_and_evaluation(ran: tuple[dict[str, Any], Path], case: str, reference: str):
    results, folder = ran
    # float16 rounds at 2**-11 where float32 does at 2**-24, in activations that lie around one.
    tolerance = TOLERANCE if case != "float16_full_4" else 2e-3
    cases = results["cases"]
    np.testing.assert_allclose(cases[case]["losses"], cases[reference]["losses"], rtol=0, atol=tolerance)
    (_, values), (_, expected) = seen(folder / case), seen(folder / reference)
    assert values.keys() == expected.keys()
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=tolerance * (1 if tolerance < 1e-3 else 10))
    assert cases[case]["metrics"]["accuracy"] == cases[reference]["metrics"]["accuracy"]
    assert abs(cases[case]["metrics"]["loss"] - cases[reference]["metrics"]["loss"]) < tolerance


def test_training_changes_something(ran: tuple[dict[str, Any], Path]):
    losses = ran[0]["cases"]["one"]["losses"]
    assert losses[-1] < losses[0] - 0.5
    assert_same(losses, losses)


@pytest.mark.parametrize(("case", "parts"), [("full_8", 8), ("float16_full_4", 4)])
def test_each_device_holds_its_part(ran: tuple[dict[str, Any], Path], case: str, parts: int):
    result = ran[0]["cases"][case]
    assert len(result["bytes"]) == parts
    assert max(result["bytes"]) <= 1.1 / parts * result["whole"]


def test_initialisation_holds_and_needs_a_part_on_each_device(ran: tuple[dict[str, Any], Path]):
    on_one, on_eight = ran[0]["initial"]
    assert on_eight["held"] <= 1.1 / 8 * on_eight["whole"] + 1024  # and a table of addresses
    assert on_one["besides"] > on_one["whole"] / 2
    assert on_eight["besides"] <= 1.1 / 8 * on_one["besides"] + 4096
