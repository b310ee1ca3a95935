"""Tests of several processes whose model_dir is a URL. Each has its own folder, and they share only the store."""

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_core.checkpoint import load_variables
from estimator_core.journal import read_lineage
from estimator_core.storage import open_storage
from estimator_core.testing import run_processes
from estimator_storage.at_urls.directories import download_directory
from plugins.storage.tests.remote.pair_child import ROWS
from plugins.storage.tests.remote.shelves import PREFIX, Shelf

pytestmark = pytest.mark.plugins  # estimator-cluster
ROOT = Path(__file__).parents[4]
#: The bytes of the table and the two slots of Adam.
STATE_BYTES = 3 * ROWS * 4 * 4


def run(
    folder: Path, count: int, steps: int = 20, *, url: str = "", **settings: Any
) -> "subprocess.CompletedProcess[str]":
    """Runs the given number of processes. A single process has two devices, so that the numbers are the same."""
    folder.mkdir(exist_ok=True)
    env = {
        **{name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "XLA_FLAGS")},
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={2 // count}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    asked = {"url": url or f"{PREFIX}{folder / 'store'}", "folder": str(folder), "steps": steps, **settings}
    program = [sys.executable, "-m", "plugins.storage.tests.remote.pair_child", json.dumps(asked)]
    return run_processes(program, count, env=env)


def outcome(folder: Path, process: int = 0) -> dict[str, Any]:
    """Returns the values that a process saw."""
    return json.loads((folder / f"outcome-{process}.json").read_text())


def table(folder: Path, url: str = "") -> bytes:
    """Returns the weights in the store."""
    storage = open_storage(url) if url else Shelf(f"{PREFIX}{folder / 'store'}")
    saved = read_lineage(storage).newest
    assert saved is not None
    target = folder / f"copy-{saved.place.rpartition('/')[2]}"
    if not target.exists():
        download_directory(storage, saved.place, target)
    return np.asarray(load_variables(target)["table"]).tobytes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs two processes for twenty steps."""
    folder = tmp_path_factory.mktemp("two")
    done = run(folder, 2)
    assert done.returncode == 0, done.stdout
    return folder


def test_each_writes_its_own_and_sees_the_same(undisturbed: Path) -> None:
    first, second = (outcome(undisturbed, process) for process in (0, 1))
    assert first["folder"] != second["folder"]
    assert first["step"] == second["step"] == 20
    assert (first["loss"], first["predicted"]) == (second["loss"], second["predicted"])
    storage = Shelf(f"{PREFIX}{undisturbed / 'store'}")
    lineage = read_lineage(storage)
    assert sorted(lineage.saved) == [15, 20]
    assert {name for name, _ in lineage.evaluations} == {"", "held_out"}
    sizes = {entry.key: entry.size for entry in storage.list("data")}
    assert {key.rpartition("/")[0].split("/")[2] for key in sizes} == {
        saved.place.split("/")[2] for saved in lineage.saved.values()
    }
    for saved in lineage.saved.values():
        for process in (0, 1):
            assert STATE_BYTES / 2 <= sizes[f"{saved.place}/arrays-{process}.pack"] < 0.6 * STATE_BYTES


def test_the_chief_alone_may_ask_for_variables(undisturbed: Path) -> None:
    first, second = (outcome(undisturbed, process) for process in (0, 1))
    assert first["asked_alone"] == [zlib.crc32(table(undisturbed))] * 2
    assert second["asked_alone"] == []
    for process in (first, second):
        assert process["predicted_again"] == process["predicted"]


def goes_on(folder: Path, undisturbed: Path, count: int) -> None:
    """Checks that the next run ends like the undisturbed run, bit for bit."""
    done = run(folder, count)
    assert done.returncode == 0, done.stdout
    assert table(folder) == table(undisturbed)
    assert outcome(folder)["predicted"] == outcome(undisturbed)["predicted"]
    storage = Shelf(f"{PREFIX}{folder / 'store'}")
    kept = {saved.place for saved in read_lineage(storage).saved.values()}
    assert {"/".join(entry.key.split("/")[:3]) for entry in storage.list("data")} == kept


@pytest.mark.slow
def test_a_store_that_lists_new_objects_late_costs_no_checkpoint(tmp_path: Path, undisturbed: Path) -> None:
    done = run(tmp_path, 2, late=True)
    assert done.returncode == 0, done.stdout
    assert outcome(tmp_path, 1)["step"] == 20
    assert outcome(tmp_path, 1)["predicted"] == outcome(undisturbed)["predicted"]


@pytest.mark.slow
def test_the_chief_dies_between_upload_and_record_and_one_process_goes_on(tmp_path: Path, undisturbed: Path) -> None:
    done = run(tmp_path, 2, die="sent", who=0)
    assert done.returncode == 75, done.stdout
    storage = Shelf(f"{PREFIX}{tmp_path / 'store'}")
    assert max(read_lineage(storage).saved) == 5
    assert any("-0000000010-" in entry.key and entry.key.endswith("manifest.json") for entry in storage.list("data"))
    goes_on(tmp_path, undisturbed, 1)


@pytest.mark.slow
def test_the_second_process_dies_in_a_save_and_two_go_on(tmp_path: Path, undisturbed: Path) -> None:
    done = run(tmp_path, 2, die="written", who=1)
    assert done.returncode == 75, done.stdout
    assert "Process 1 of 2" in done.stdout
    assert max(read_lineage(Shelf(f"{PREFIX}{tmp_path / 'store'}")).saved) == 5
    goes_on(tmp_path, undisturbed, 2)
    for process in (0, 1):  # its half of the state
        assert STATE_BYTES / 2 <= outcome(tmp_path, process)["read"] < 0.6 * STATE_BYTES


@pytest.mark.slow
def test_one_process_goes_on_in_two(tmp_path: Path, undisturbed: Path) -> None:
    done = run(tmp_path, 1, 10)
    assert done.returncode == 0, done.stdout
    goes_on(tmp_path, undisturbed, 2)


@pytest.mark.slow
def test_two_processes_end_what_was_killed_after_its_last_save(tmp_path: Path, undisturbed: Path) -> None:
    done = run(tmp_path, 2, die="ended", who=0)
    assert done.returncode == 75, done.stdout
    lineage = read_lineage(Shelf(f"{PREFIX}{tmp_path / 'store'}"))
    assert (max(lineage.saved), lineage.ended) == (20, None)
    goes_on(tmp_path, undisturbed, 2)
    assert [outcome(tmp_path, process)["seen"] for process in (0, 1)] == [[-1], [-1]]
    assert read_lineage(Shelf(f"{PREFIX}{tmp_path / 'store'}")).ended is not None


@pytest.mark.slow
def test_all_learn_that_another_run_has_taken_over(tmp_path: Path) -> None:
    done = run(tmp_path, 2, 5000, rival=7)
    assert done.returncode == 1, done.stdout
    for process in (0, 1):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"[{process}] ")]
        assert any("SupersededError: Another run has taken over" in line and "host-b" in line for line in lines), lines
    assert "ProcessLostError" not in done.stdout
    assert max(read_lineage(Shelf(f"{PREFIX}{tmp_path / 'store'}")).saved) <= 5
