"""Tests of several processes over gloo: the numbers are those of one process, and any number of devices restores the
checkpoints.
"""

import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scale_runs import HERE, TOLERANCE, assert_same, environment, launch, run_worker, seen

import estimator_core as ec
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._checkpoint.read import read_checkpoint
from estimator_core._journal.reading import lineage_of
from estimator_core._packs.packs import Packs
from estimator_core._storage.local import LocalStorage

pytestmark = pytest.mark.plugins  # estimator-cluster


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of 12 steps of one process."""
    out = tmp_path_factory.mktemp("one") / "one"
    done = launch("train_worker.py", 1, {"model_dir": str(out) + "_dir", "out": str(out), "steps": 12})
    assert done.returncode == 0, done.stdout
    return out


@pytest.mark.parametrize(
    ("count", "rules", "mesh"),
    [
        pytest.param(2, "full", None, marks=pytest.mark.slow),
        pytest.param(4, "full", None, marks=pytest.mark.slow),
        pytest.param(4, None, None, marks=pytest.mark.slow),
        pytest.param(2, "tensor", {"model": 2}, marks=pytest.mark.slow),
        pytest.param(4, "mixed", {"data": 2, "model": 2}, marks=pytest.mark.slow),
    ],
)
def test_the_same_as_one_process(tmp_path: Path, one: Path, count: int, rules: str | None, mesh: dict[str, int] | None):
    out = tmp_path / "out"
    settings = {"model_dir": str(tmp_path / "run"), "out": str(out), "steps": 12, "rules": rules, "mesh": mesh}
    # 192 examples in batches of 52: the last one is short
    done = launch("train_worker.py", count, {**settings, "evaluate": 52})
    assert done.returncode == 0, done.stdout
    expected, weights = seen(one)
    for process in range(count):
        result, values = seen(out, process)
        assert_same(result["losses"], expected["losses"])
        assert result["metrics"]["accuracy"] == expected["metrics"]["accuracy"]
        assert abs(result["metrics"]["per_example"] - expected["metrics"]["per_example"]) < TOLERANCE
        for name, value in values.items():
            np.testing.assert_allclose(value, weights[name], rtol=0, atol=TOLERANCE)
        if rules == "full":
            assert max(result["bytes"]) <= 1.1 / count * result["whole"]
    checkpoints = sorted(int(path.name) for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert checkpoints == [0, 5, 10, 12]
    written_once(tmp_path / "run", count, in_pieces=rules is not None)
    _, values = seen(out)
    restored = ec.load_variables(str(tmp_path / "run"))
    assert restored.keys() == values.keys()
    assert all(restored[name].tobytes() == values[name].tobytes() for name in values)
    if rules == "full":
        back_and_forth(tmp_path, values, count, (1, 2, 8) if count == 4 else (4,))


def test_a_seed_that_is_drawn_is_the_same_in_all(tmp_path: Path) -> None:
    out, config = tmp_path / "out", {"tf_random_seed": None}
    settings = {"model_dir": str(tmp_path / "run"), "out": str(out), "steps": 2, "config": config, "dropout": True}
    done = launch("train_worker.py", 2, settings)
    assert done.returncode == 0, done.stdout
    (first, values), (second, others) = seen(out, 0), seen(out, 1)
    assert first["losses"] == second["losses"]
    assert values.keys() == others.keys()
    assert all(values[name].tobytes() == others[name].tobytes() for name in values)
    clocks = {name: read_checkpoint(tmp_path / "run" / "checkpoints" / name).clock[2:].tolist() for name in ("0", "2")}
    assert clocks["0"] == clocks["2"] == first["seed"] == second["seed"]


def written_once(model_dir: Path, count: int, *, in_pieces: bool) -> None:
    """Checks for one event file of the evaluation, and for one piece of one pack per array element."""
    assert len(list(model_dir.glob("eval/events.*"))) == 1
    directory = model_dir / "checkpoints" / "12"
    manifest = read_manifest(directory)
    assert manifest.format == 3
    packs = Packs(storage=LocalStorage(directory), prefix="", where="", entries=manifest.packs)
    assert len(packs.entries) == (count if in_pieces else 1)
    pieces = [piece for _, piece in packs.pieces()]
    for item in ("variables", "opt_state"):
        for path, entry in manifest.arrays[item].items():
            places = [piece.place for piece in pieces if (piece.item, piece.path) == (item, path)]
            assert len(set(places)) == len(places) >= 1
            sizes = [np.prod([stop - start for start, stop in place], dtype=int) for place in places]
            assert sum(sizes) == np.prod(entry.shape, dtype=int)


def back_and_forth(tmp_path: Path, values: dict[str, np.ndarray], count: int, numbers: tuple[int, ...]) -> None:
    """Restores the checkpoint of several processes in one process with these numbers of devices, and the checkpoint
    that it saves again in several.
    """
    for devices in numbers:
        there, out = tmp_path / f"on_{devices}", tmp_path / f"out_{devices}"
        shutil.copytree(tmp_path / "run", there)
        restored = run_worker("restore_worker.py", str(there), str(devices), str(out), devices=devices)
        assert restored == {"step": 12, "devices": devices}
        with np.load(f"{out}.npz") as found:
            assert all(found[name].tobytes() == value.tobytes() for name, value in values.items())
        done = launch("restore_worker.py", count, None, arguments=[str(there), str(count), f"{out}_back"])
        assert done.returncode == 0, done.stdout
        with np.load(f"{out}_back.npz") as found:
            assert all(found[name].tobytes() == value.tobytes() for name, value in values.items())


@pytest.mark.slow
def test_a_killed_process_is_named_and_the_relaunch_goes_on(tmp_path: Path):
    settings = {"model_dir": str(tmp_path / "run"), "steps": 30, "rules": "full", "out": str(tmp_path / "out")}
    done = launch("fault_worker.py", 4, {**settings, "fault": "kill", "who": 2, "at": 12})
    assert done.returncode == 75, done.stdout
    for survivor in (0, 1, 3):
        assert re.search(rf"\[{survivor}\] .*Process 2 of 4 .* is lost: nothing was heard from it", done.stdout)
    assert "did not end; it is killed" not in done.stderr  # `launch` allows them sixty seconds
    again = launch("fault_worker.py", 4, settings)
    assert again.returncode == 0, again.stdout
    result, _ = seen(tmp_path / "out")
    assert result["step"] == 30
    assert len(result["losses"]) in (20, 25)  # from step 5 or 10, not from the start


@pytest.mark.slow
def test_a_run_killed_after_its_last_save_is_ended_without_a_step(tmp_path: Path):
    settings = {"model_dir": str(tmp_path / "run"), "steps": 12, "rules": "full", "out": str(tmp_path / "out")}
    done = launch("fault_worker.py", 2, {**settings, "fault": "end", "who": 0})
    assert done.returncode == 75, done.stdout
    assert (max(lineage_of(tmp_path / "run").saved), lineage_of(tmp_path / "run").ended) == (12, None)
    again = launch("fault_worker.py", 2, settings)
    assert again.returncode == 0, again.stdout
    assert [seen(tmp_path / "out", process)[0]["losses"] for process in (0, 1)] == [[], []]
    assert lineage_of(tmp_path / "run").ended.step == 12


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["raise", "freeze"])
def test_what_else_can_happen_to_a_process_ends_all(tmp_path: Path, fault: str):
    settings = {"model_dir": str(tmp_path / "run"), "steps": 500, "rules": "full"}
    done = launch("fault_worker.py", 2, {**settings, "fault": fault, "who": 1, "at": 12})
    reason = "it failed: RuntimeError: the input of this process broke" if fault == "raise" else "nothing was heard"
    assert re.search(rf"\[0\] .*Process 1 of 2 .* is lost: {reason}", done.stdout), done.stdout
    assert done.returncode != 0


@pytest.mark.slow
def test_the_others_end_with_75_before_jax_aborts_them_where_process_0_is_frozen(tmp_path: Path):
    """Process 0 runs the service and sends no last message, and the exit status of jax's abort has no information."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    settings = {
        "model_dir": str(tmp_path / "run"),
        "steps": 500,
        "rules": "full",
        "fault": "freeze",
        "who": 0,
        "at": 12,
    }
    group = [
        subprocess.Popen(
            [sys.executable, str(HERE / "fault_worker.py"), json.dumps(settings)],
            env=environment(
                JAX_COORDINATOR_ADDRESS=address,
                JAX_NUM_PROCESSES="3",
                JAX_PROCESS_ID=str(index),
                ESTIMATOR_RUN_SECRET="of the test",
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in range(3)
    ]
    try:
        ended = [(process.communicate(timeout=240)[0], process.returncode) for process in group[1:]]
    finally:
        for process in group:
            process.kill()
            process.communicate()
    for output, status in ended:
        assert status == 75, output
        assert re.search(r"Process 0 of 3 .* is lost: its coordination service has not answered", output), output


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 3])
def test_a_signal_to_one_process_saves_in_all_at_one_step(tmp_path: Path, who: int):
    settings = {"model_dir": str(tmp_path / "run"), "steps": 500, "rules": "full", "fault": "term", "who": who, "at": 7}
    done = launch("fault_worker.py", 4, settings)
    steps = re.findall(r"PreemptedError: .* its state saved at step (\d+)", done.stdout)
    assert len(steps) == 4, done.stdout
    assert len(set(steps)) == 1
    newest = max(int(path.name) for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert newest == int(steps[0])
