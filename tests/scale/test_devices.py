"""Tests of placements on 1, 2, 4 and 8 devices of one process: the numbers are the same, and each device holds only its
part.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scale_runs import TOLERANCE, assert_same, run_worker, seen

QUICK = ["full_8", "mixed", "four_a_dispatch"]
MORE = ["data_2", "zero1_8", "tensor_4"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("devices")
    return run_worker("devices_worker.py", str(folder), "one", *QUICK, devices=8), folder


@pytest.fixture(scope="module")
def more_ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("more")
    others = ["accumulated", "accumulated_4", "float16", "float16_full_4"]
    return run_worker("devices_worker.py", str(folder), "one", *MORE, *others, devices=8), folder


@pytest.mark.parametrize("case", QUICK)
def test_the_same_curve_weights_and_evaluation(ran: tuple[dict[str, Any], Path], case: str):
    assert_alike(*ran, case, "one")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "reference"),
    [*((case, "one") for case in MORE), ("accumulated_4", "accumulated"), ("float16_full_4", "float16")],
)
def test_more_placements_are_the_same(more_ran: tuple[dict[str, Any], Path], case: str, reference: str):
    assert_alike(*more_ran, case, reference)


def assert_alike(results: dict[str, Any], folder: Path, case: str, reference: str) -> None:
    # float16 rounds at 2**-11 and float32 at 2**-24, in activations of about one.
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


def test_a_random_key_of_the_optimizer_is_restored_with_any_number_of_devices(tmp_path: Path):
    def weight(*parts: tuple[int, int]) -> float:
        settings = {"model_dir": str(tmp_path / str(len(parts))), "parts": parts}
        return run_worker("noise_worker.py", json.dumps(settings), devices=4)["weight"]

    assert weight((0, 3), (4, 6), (2, 9), (0, 12)) == weight((0, 12))


@pytest.mark.parametrize(
    ("runs", "case", "parts"),
    [("ran", "full_8", 8), pytest.param("more_ran", "float16_full_4", 4, marks=pytest.mark.slow)],
)
def test_each_device_holds_its_part(request: pytest.FixtureRequest, runs: str, case: str, parts: int):
    result = request.getfixturevalue(runs)[0]["cases"][case]
    assert len(result["bytes"]) == parts
    assert max(result["bytes"]) <= 1.1 / parts * result["whole"]


def test_initialisation_holds_and_needs_a_part_on_each_device(ran: tuple[dict[str, Any], Path]):
    on_one, on_eight = ran[0]["initial"]
    assert on_eight["held"] <= 1.1 / 8 * on_eight["whole"] + 1024  # plus a table of addresses
    assert on_one["besides"] > on_one["whole"] / 2
    assert on_eight["besides"] <= 1.1 / 8 * on_one["besides"] + 4096
