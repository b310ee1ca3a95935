"""Fine-tuning that is killed at random moments and restarted ends with bitwise the same weights."""

import os
import random
import subprocess
import sys
import time

import pytest

import estimator_core as ec
from plugins.canned_bert.tests.test_command import files, pretrained, sentences  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow
STEPS = 40


def start(data, weights, model_dir):
    command = [sys.executable, "-m", "estimator_core._cli.main", "bert-classifier", "--data", str(data), "--do-train"]
    command += ["--init-checkpoint", str(weights), "--model-dir", str(model_dir), "--max-seq-length", "12"]
    command += ["--train-batch-size", "16", "--num-train-epochs", "10", "--save-checkpoints-steps", "8"]
    command += ["--buckets", "2", "--ema-decay", "0.9"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"}
    )


def weights_of(model_dir):
    assert ec.latest_checkpoint(str(model_dir)).endswith(f"/{STEPS}")
    return {name: value.tobytes() for name, value in ec.load_variables(str(model_dir)).items()}


def finish(data, weights, model_dir):
    process = start(data, weights, model_dir)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output


def test_killed_twice(files, pretrained, tmp_path):  # noqa: F811
    finish(files, pretrained, tmp_path / "whole")
    expected = weights_of(tmp_path / "whole")
    kills = 0
    for after in (8, 24):
        process = start(files, pretrained, tmp_path / "killed")
        while process.poll() is None and not (tmp_path / "killed" / "checkpoints" / str(after)).exists():
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.2))
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert kills, "it had ended before it was killed"
    finish(files, pretrained, tmp_path / "killed")
    assert weights_of(tmp_path / "killed") == expected
