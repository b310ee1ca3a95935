"""Tests of 100 million rows on eight devices. No single device could hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import large_growing_program
import large_program
import numpy as np
import pytest

from estimator_core.testing import run_with_devices

PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
BUDGET = 2**30  # bytes per device
ROW = large_program.COLUMNS * 4


def trained(devices: int, model_dir: Path, *arguments: str, program: str = "large_program") -> dict[str, Any]:
    code = f"{PROGRAM} import {program}; {program}.main(*sys.argv[1:])"
    return json.loads(run_with_devices(devices, code, str(model_dir), *arguments, timeout=900).splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_device_holds_more_than_its_part_and_a_run_continues_on_two_with_the_slots(tmp_path: Path) -> None:
    rows = 100_000_000
    found = trained(8, tmp_path, "adagrad", "2", str(rows))
    assert 2 * rows * ROW / 8 <= found["bytes"] < BUDGET < rows * ROW
    squares = np.float32(0.1) + np.array([1, 2])  # of Adagrad, with gradients of 1
    expected = large_program.FIRST - np.cumsum(large_program.RATE / np.sqrt(squares))
    np.testing.assert_allclose([found["low"], found["high"]], expected[0], rtol=1e-5)
    again = trained(2, tmp_path, "adagrad", "3", str(rows))
    assert (again["step"], again["bytes"] >= 2 * rows * ROW / 2) == (3, True)
    np.testing.assert_allclose([again["low"], again["high"]], expected[1], rtol=1e-5)
    print(found, again)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rows_that_changed_are_saved_and_a_run_continues_on_other_devices(tmp_path: Path) -> None:
    rows = 10_000_000
    trained(8, tmp_path, "sgd", "2", str(rows))
    newest = {path.name: path.stat().st_size for path in tmp_path.glob("checkpoints/2/*.pack")}
    assert newest["base-0.pack"] >= rows * ROW
    assert newest["arrays-0.pack"] < 1.1 * large_program.BATCH * (ROW + 8)  # rows with their numbers
    found = trained(2, tmp_path, "sgd", "3", str(rows))
    assert found["step"] == 3
    np.testing.assert_allclose([found["low"], found["high"]], large_program.FIRST - 2 * large_program.RATE, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_grown_and_evicted_rows_of_100_million_go_through_checkpoint_devices_and_export(tmp_path: Path) -> None:
    """65,536 ids have rows all over the table.

    Other ids take them on two devices, with initial values and initial slots.
    """
    pytest.importorskip("estimator_exporters")
    rows, first, squares = 100_000_000, large_growing_program.FIRST, np.float32(0.1) + np.array([1, 2])
    own = first - np.cumsum(large_growing_program.RATE / np.sqrt(squares))  # of Adagrad, with gradients of 1
    given = str(rows)
    before = trained(8, tmp_path / "run", "2", given, program="large_growing_program")
    np.testing.assert_allclose([before["read"]["1"], before["read"]["2"]], [[first] * 2, [own[0]] * 2], rtol=1e-6)
    assert before["bytes"] < 1.1 * rows * (2 * large_growing_program.COLUMNS * 4 + 16) / 8
    found = trained(2, tmp_path / "run", "5", given, program="large_growing_program")
    assert set(found["read"]) == {"3", "4", "5"}  # resumed after step 2
    assert found["unknown"] == {"3": 1.0, "4": 0.0, "5": 0.0}
    np.testing.assert_allclose(list(found["read"].values()), [[first] * 2, [first] * 2, [own[0]] * 2], rtol=1e-6)
    default = first - large_growing_program.RATE  # one large gradient, in step 3
    expected = np.array([default] * 8 + [own[1]] * 8 + [default, 0])[:, None].repeat(large_growing_program.COLUMNS, 1)
    out = trained(1, tmp_path / "run", str(tmp_path / "export"), given, program="large_growing_program")
    np.testing.assert_allclose(out["predicted"], expected, rtol=1e-5)
    np.testing.assert_allclose(out["served"], expected, rtol=1e-5)
    print([{key: each[key] for key in ("bytes", "peak", "seconds") if key in each} for each in (before, found, out)])
