"""Tests of the digits example: killed or terminated at a random moment and resumed, it ends with bitwise the same
weights.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import estimator_core as ec

pytestmark = [pytest.mark.plugins, pytest.mark.libraries]

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "digits_convnet.py"
STEPS = 60


def start(model_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "digits_worker.py"), str(EXAMPLE), str(model_dir), str(STEPS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )


def finish(model_dir: Path) -> None:
    process = start(model_dir)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output


def weights(model_dir: Path) -> dict[str, bytes]:
    assert ec.latest_checkpoint(str(model_dir)).endswith(f"/{STEPS}")
    return {name: value.tobytes() for name, value in ec.load_variables(str(model_dir)).items()}


def wait_for_checkpoint(model_dir: Path, process: subprocess.Popen[str], step: int) -> None:
    while process.poll() is None and not (model_dir / "checkpoints" / str(step)).exists():
        time.sleep(0.005)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    model_dir = tmp_path_factory.mktemp("whole")
    finish(model_dir)
    return weights(model_dir)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 20])
def test_killed(tmp_path: Path, uninterrupted: dict[str, bytes], after: int) -> None:
    process = start(tmp_path)
    wait_for_checkpoint(tmp_path, process, after)
    time.sleep(random.uniform(0, 0.5))
    process.kill()
    process.communicate()
    finish(tmp_path)
    assert weights(tmp_path) == uninterrupted


@pytest.mark.slow
def test_terminated(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    process = start(tmp_path)
    wait_for_checkpoint(tmp_path, process, 20)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    if process.returncode != 0:  # otherwise it ended before the signal came
        assert "PreemptedError: Training was interrupted (SIGTERM) and its state saved at step" in output
        saved = int(output.rpartition("saved at step ")[2].split(";")[0])
        assert ec.latest_checkpoint(str(tmp_path)).endswith(f"/{saved}")
    finish(tmp_path)
    assert weights(tmp_path) == uninterrupted
