"""Tests of every combination of features over two processes: none hangs, and the numbers are those of one process."""

import json
from pathlib import Path
from typing import Any

import pytest
from features_worker import CASES
from scale_runs import launch

pytestmark = pytest.mark.plugins  # estimator-cluster, and the packages of the features

#: Of metrics, and of norms of weights of about one, after up to forty steps.
TOLERANCE = 1e-5


def results(folder: Path, processes: int, devices: int, cases: list[str]) -> list[dict[str, Any]]:
    """The results of every process."""
    out = folder / f"out{processes}"
    told = {"folder": str(folder / str(processes)), "out": str(out), "mesh": {"data": -1}, "cases": cases}
    done = launch("features_worker.py", processes, told, devices=devices)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(Path(f"{out}.{process}.json").read_text()) for process in range(processes)]


def assert_close(found: Any, expected: Any, where: str) -> None:
    """Checks that two trees of numbers and words agree."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name in expected:
            assert_close(found[name], expected[name], f"{where}/{name}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE), where
    else:
        assert found == expected, where


def compare(folder: Path, cases: list[str]) -> None:
    (one,) = results(folder, 1, 2, cases)
    for process, seen in enumerate(results(folder, 2, 1, cases)):
        assert_close(seen, one, f"process {process}")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_feature_has_the_numbers_of_one_process(tmp_path: Path, case: str) -> None:
    compare(tmp_path, [case])
