"""Tests that follow the pages about launching from an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_core.checkpoint import all_checkpoints

PAGES = Path(__file__).parents[3] / "docs" / "launch"


def program(page: str) -> str:
    found = re.search(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def command(page: str, begins: str) -> list[str]:
    found = re.search(rf"^(?:\$ )?({re.escape(begins)}.*)$", (PAGES / page).read_text(), re.MULTILINE)
    assert found is not None
    words = shlex.split(found[1])
    assert words[0] == "estimator"
    return [sys.executable, "-m", "estimator_core._cli.main", *words[1:-2], sys.executable, words[-1]]


@pytest.mark.plugins  # estimator-cluster
@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are not beside these tests")
def test_from_an_empty_folder_to_two_processes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program("local.md"))
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XDG_STATE_HOME": str(tmp_path / "state")}
    launched = command("local.md", "estimator launch --processes 2")
    done = subprocess.run(launched, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stdout.splitlines() if "metrics {" in line]
    assert len(said) == 2, done.stdout
    assert all("'global_step': 20" in line for line in said)
    assert [int(Path(path).name) for path in all_checkpoints(str(tmp_path / "run"))][-1] == 20


@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are not beside these tests")
def test_from_the_same_folder_to_a_manifest(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    launched = command("kubernetes.md", "estimator launch --on kubernetes --processes 2 --image")
    done = subprocess.run(launched, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    text = done.stdout.partition("# ---- Containerfile")[0]
    made = [one["kind"] for one in yaml.safe_load_all(text)]
    assert made == ["Service", "JobSet", "NetworkPolicy", "Job", "Deployment", "Service"]


@pytest.mark.skipif(not PAGES.is_dir(), reason="the pages are not beside these tests")
def test_from_the_same_folder_to_a_batch_script(tmp_path: Path) -> None:
    words = command("slurm.md", "estimator launch --on slurm --processes 16")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert "#SBATCH --gres=gpu:8" in done.stdout
    assert not list(tmp_path.iterdir())
