"""100 million rows on eight devices, none of which could hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import large_program
import numpy as np
import pytest

from estimator_core.testing import run_with_devices

PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import large_program; "
BUDGET = 2**30  # bytes of a device
ROW = large_program.COLUMNS * 4


def trained(devices: int, model_dir: Path, *arguments: str) -> dict[str, Any]:
    code = PROGRAM + "large_program.main(*sys.argv[1:])"
    return json.loads(run_with_devices(devices, code, str(model_dir), *arguments, timeout=500).splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_device_holds_more_than_its_part_and_a_run_continues_on_two_with_the_slots(tmp_path: Path) -> None:
    rows = 100_000_000
    found = trained(8, tmp_path, "adagrad", "2", str(rows))
    assert 2 * rows * ROW / 8 <= found["bytes"] < BUDGET < rows * ROW
    squares = np.float32(0.1) + np.array([1, 2])  # Adagrad's, with gradients of 1
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
    assert newest["arrays-0.pack"] < 1.1 * large_program.BATCH * (ROW + 8)  # rows, and their numbers
    found = trained(2, tmp_path, "sgd", "3", str(rows))
    assert found["step"] == 3
    np.testing.assert_allclose([found["low"], found["high"]], large_program.FIRST - 2 * large_program.RATE, rtol=1e-5)
