"""Tests of a chief, a worker and an evaluator of a TF_CONFIG cluster that run at the same time."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from scale_runs import HERE, environment

import estimator_core as ec


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.slow
def test_the_evaluator_sees_every_checkpoint_and_ends_with_early_stopping(tmp_path: Path):
    cluster = {"chief": [f"127.0.0.1:{free_port()}"], "worker": ["127.0.0.1:1"]}
    children = [
        subprocess.Popen(
            [sys.executable, str(HERE / "roles_worker.py"), str(tmp_path / "run"), "1000", "30"],
            env=environment(TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role in ("chief", "worker", "evaluator")
    ]
    outputs = [child.communicate(timeout=280) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], outputs
    said = [json.loads(stdout.strip().splitlines()[-1]) for stdout, _ in outputs]
    assert [one["role"] for one in said] == ["chief", "worker", "evaluator"]
    assert [one["metrics"] for one in said[:2]] == [None, None]
    assert said[2]["metrics"]["global_step"] == 30
    assert sorted(ec.read_eval_metrics(str(tmp_path / "run" / "eval"))) == [0, 10, 20, 30]
    exports = [json.loads(line) for line in (tmp_path / "run" / "exports.jsonl").read_text().splitlines()]
    assert [int(step) for step, final, _ in exports if not final] == [0, 10, 20, 30]
    assert [int(step) for step, final, _ in exports if final] == [30]
