"""Tests of arrays that are saved with one sharding and placed with another. Eight devices need a separate process."""

import os
import subprocess
import sys
from pathlib import Path


def test_any_sharding_to_any_other_bit_for_bit() -> None:
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / "shardings_worker.py")],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")]),
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "ok"
