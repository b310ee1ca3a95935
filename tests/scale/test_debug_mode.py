"""Tests of `RunConfig(debug=True)` with several processes."""

from pathlib import Path

import pytest
from scale_runs import launch

pytestmark = pytest.mark.plugins  # processes are connected by estimator-cluster


IN_PROCESS = {"[0]": "this process has none", "[1]": "'features/x' (shape [16, 4]) is nan at [10, 1]"}


def test_each_process_checks_its_own_part_of_a_batch(tmp_path: Path) -> None:
    done = launch("debug_worker.py", 2, {"model_dir": str(tmp_path)})
    assert done.returncode != 0
    # The process that fails first may end the other one.
    raised = [line for line in done.stdout.splitlines() if "errors.NanLossDuringTrainingError: NaN loss" in line]
    assert raised
    for line in raised:
        assert "output 'loss' (shape []) is nan at [] after step 2" in line
        assert f"In the batch of this step {IN_PROCESS[line[:3]]}." in line
