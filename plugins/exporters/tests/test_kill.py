"""Tests of exports that are killed at random moments: readers see only whole exports, and the next run cleans up."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._export.directories import exports_in, new_export

SCRIPT = Path(__file__).with_name("export_forever.py")


def kill_at_a_random_moment(directory, moments):
    """Runs the script and kills it at a random time after its first export.

    Returns the number of exports it reported.
    """
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(directory)], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        time.sleep(moments.uniform(0, 0.6))
        process.kill()
        return 1 + len(process.stdout.read().split())


def check_every_export(directory):
    x = np.eye(64, dtype=np.float32)[:2]
    for path in exports_in(directory):
        loaded = ec.export.load(path)
        scores = loaded.signatures["serving_default"](x=x)["scores"]
        np.testing.assert_array_equal(scores, np.full((2, 64), loaded.manifest["global_step"], np.float32))


def run(directory, kills, seed):
    moments = random.Random(seed)
    left_behind = 0
    for _ in range(kills):
        written = kill_at_a_random_moment(directory, moments)
        check_every_export(directory)
        newest = ec.export.load(directory).manifest["global_step"]
        assert written <= newest <= written + 1, "the newest export is not the one that was written last"
        left_behind += len(list(directory.glob("temp-*")))
    with new_export(directory) as (temporary, _):
        (temporary / "file").touch()
    assert list(directory.glob("temp-*")) == [], "what killed writers left behind is still there"
    return left_behind


def test_three_kills(tmp_path):
    run(tmp_path, 3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_thirty_kills(tmp_path, seed):
    assert run(tmp_path, 10, seed) > 0, "no kill hit an export in the making: the moments are badly chosen"
