"""Tests of `benchmarks/file_to_model.py`: the framework trains the same model from both kinds of file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.plugins
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "file_to_model.py"


@pytest.mark.slow
def test_a_model_from_a_file_of_either_kind_is_the_same_and_absent_peers_are_named(tmp_path: Path) -> None:
    """All contestants read the same rows in the same order. Only the kind of file differs."""
    command = [sys.executable, str(SCRIPT), "--rows", "1024", "--rounds", "1"]
    folders = ["--warm-up", "0", "--folder", str(tmp_path / "files"), "--json", str(tmp_path / "found.json")]
    # An isolated interpreter (PYTHONSAFEPATH) does not look for modules where its script is.
    seen = os.pathsep.join(filter(None, [str(SCRIPT.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": seen}
    done = subprocess.run(
        [*command, *folders], check=True, stdout=subprocess.PIPE, text=True, timeout=120, env=environment
    )
    content: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    csv, tfrecord = (table["notes"] for table in content["tables"])
    assert csv[0].startswith("estimator, csv: whole ")
    assert csv[0].rpartition("held-out loss ")[2] == tfrecord[0].rpartition("held-out loss ")[2]
    for kind, peers in {"csv": ("tf.estimator", "Keras", "PyTorch"), "tfrecord": ("tf.estimator", "Keras")}.items():
        for name in peers:
            assert f"not measured: estimator, {kind} / {name}, {kind}" in done.stdout
