"""Tests that the same seed on the same devices produces the same bits in every process, whatever its hashes and
caches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("train_once.py")


def trained(directory: Path, steps_per_dispatch: int | str, **env: str) -> dict[str, Any]:
    """Returns the digests of a run in a separate process."""
    found = subprocess.run(
        [sys.executable, str(WORKER), str(directory), str(steps_per_dispatch)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **env},
    )
    return json.loads(found.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return trained(tmp_path_factory.mktemp("first"), 1, PYTHONHASHSEED="1")


def test_other_hashes_and_nothing_compiled_yet(tmp_path: Path, first: dict[str, Any]) -> None:
    again = trained(tmp_path / "run", 1, PYTHONHASHSEED="2", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"))
    assert again == first


@pytest.mark.slow
def test_measured_steps_per_dispatch(tmp_path: Path, first: dict[str, Any]) -> None:
    assert trained(tmp_path, "auto") == first


@pytest.mark.slow
def test_another_seed_gives_other_bits(tmp_path: Path, first: dict[str, Any]) -> None:
    changed = WORKER.read_text().replace("tf_random_seed=11", "tf_random_seed=12")
    other = tmp_path / "train_once.py"
    other.write_text(changed)
    found = subprocess.run(
        [sys.executable, str(other), str(tmp_path / "run"), "1"], check=True, stdout=subprocess.PIPE, text=True
    )
    assert json.loads(found.stdout.splitlines()[-1])["predictions"] != first["predictions"]
