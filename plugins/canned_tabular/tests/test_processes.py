"""The command in two processes prints the evaluation of one process."""

import os
import re
import subprocess
import sys

import pytest

from plugins.canned_tabular.tests.test_command import write

PROGRAM = [sys.executable, "-m", "estimator_core._cli.main"]


def told(folder, processes):
    """The metrics by name that the command prints for its evaluation."""
    launch = [] if processes == 1 else [*PROGRAM, "launch", "--processes", str(processes), "--"]
    arguments = ["--csv", str(folder / "people.csv"), "--label", "income", "--model-dir", str(folder / str(processes))]
    quick = ["--hidden-units", "16", "--epochs", "4", "--batch-size", "32", "--dropout", "0.1", "--no-plots"]
    done = subprocess.run(
        [*launch, *PROGRAM, "tabular", "train", *arguments, *quick, "--no-export"],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.removeprefix("[0]").strip() for line in done.stdout.splitlines() if not line.startswith("[1]")]
    found = [re.fullmatch(r"([\w/]+) = (\S+)", line) for line in lines]
    return {match[1]: float(match[2]) for match in found if match}


@pytest.mark.slow
def test_two_processes_have_the_evaluation_of_one(tmp_path):
    write(tmp_path / "people.csv", 301, 0)
    one, two = told(tmp_path, 1), told(tmp_path, 2)
    assert one["global_step"] == -(-241 * 4 // 32)  # of ten rows, one is for the test and one for validation
    assert two == pytest.approx(one, rel=1e-4)
