"""Tests of real runs and their journal: one writer, and each point once, whatever is killed, frozen, removed or
copied.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import estimator_core as ec
from estimator_core._checkpoint import CheckpointItems, CheckpointStore
from estimator_core._checkpoint.audit import audit
from estimator_core._checkpoint.catalog import all_checkpoints, latest_checkpoint, unnamed
from estimator_core._checkpoint.read import read_checkpoint
from estimator_core._cli.main import main
from estimator_core._journal.entries import JournalError, Took
from estimator_core._journal.reading import lineage_of, read_lineage
from estimator_core._journal.writer import take_over
from estimator_core._storage.contract import StorageGoneError
from estimator_core._storage.local import LocalStorage
from estimator_core.errors import CheckpointCorruptError, CheckpointError, SupersededError
from estimator_core.hooks import Hook
from tests.journal.small_run import batches, estimator_of, train

SCRIPT = Path(__file__).with_name("small_run.py")
STEPS = 15


def points(directory: Path) -> dict[str, list[int]]:
    """Returns the steps that TensorBoard's own reader finds."""
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0}).Reload()
    return {tag: [event.step for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def started(model_dir: Path, *moment: Any, steps: int = STEPS) -> subprocess.Popen[str]:
    """Starts a run in a separate process."""
    command = [sys.executable, str(SCRIPT), str(model_dir), str(steps), *map(str, moment)]
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def killed(model_dir: Path, where: str, number: int, *, steps: int = STEPS) -> None:
    process = started(model_dir, where, number, "SIGKILL", steps=steps)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors


def what_is_left(model_dir: Path) -> dict[str, Any]:
    """Returns the weights, results, points and checkpoint names of a run in a form that can be compared."""
    found = {place: points(model_dir / place) for place in (".", "eval", "eval_often")}
    return {
        "weights": {name: value.tobytes() for name, value in ec.load_variables(str(model_dir)).items()},
        "results": {name: ec.read_eval_metrics(model_dir / name) for name in ("eval", "eval_often")},
        "points": {f"{place}:{tag}": steps for place, tags in found.items() for tag, steps in tags.items()},
        "checkpoints": sorted(path.name for path in (model_dir / "checkpoints").iterdir()),
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of an undisturbed run."""
    directory = tmp_path_factory.mktemp("whole")
    train(str(directory), STEPS)
    left = what_is_left(directory)
    assert left["points"]["eval:loss"] == [5, 10, 15]
    assert left["points"]["eval_often:loss"] == [2, 4, 5, 6, 8, 10, 12, 14, 15]
    assert left["points"][".:loss"] == list(range(1, 16))
    return left


def copied(model_dir: Path, target: Path) -> Path:
    shutil.copytree(model_dir, target)
    return target


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 10 steps; tests copy it."""
    directory = tmp_path_factory.mktemp("trained") / "run"
    train(str(directory), 10)
    return directory


#: The moments of the first kill and of the second one, which targets the recovery from the first.
PAIRS = [
    (("name", 3), ("views", 1)),
    (("line", 9), ("trim", 1)),
    (("delete", 4), ("evaluation", 1)),
    (("recorded", 5), ("record", 2)),
]


@pytest.mark.parametrize(
    ("first", "second"),
    [PAIRS[0], *(pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS[1:])],
    ids=lambda pair: f"{pair[0]} {pair[1]}",
)
def test_killed_twice_it_ends_as_if_nobody_had_disturbed_it(
    tmp_path: Path, whole: Any, first: Any, second: Any
) -> None:
    run = tmp_path / "run"
    killed(run, *first)
    killed(run, *second)
    train(str(run), STEPS)
    assert what_is_left(run) == whole
    assert audit(run).findings == ()


@pytest.mark.slow
def test_a_point_behind_the_checkpoint_is_not_read_twice(tmp_path: Path) -> None:
    """The run is killed after a checkpoint and a later evaluation, resumed, killed before its first evaluation, and
    resumed.
    """
    run = tmp_path / "run"
    killed(run, "line", 8)  # results of steps after the last checkpoint are written
    killed(run, "evaluation", 1)
    train(str(run), STEPS)
    assert points(run / "eval")["loss"] == [5, 10, 15]
    assert points(run / "eval_often")["loss"] == [2, 4, 5, 6, 8, 10, 12, 14, 15]


def test_a_clock_set_back_hides_no_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    run = copied(trained, tmp_path / "run")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    train(str(run), STEPS)
    assert points(run)["loss"] == list(range(1, 16))
    assert points(run / "eval")["loss"] == [5, 10, 15]
    names = sorted(path.name for path in run.glob("events.*"))
    assert names == ["events.out.tfevents.0000000001.e000001", "events.out.tfevents.0000000002.e000002"]


def test_step_0_of_an_evaluation_survives_a_kill(tmp_path: Path) -> None:
    hooks = pytest.importorskip("estimator_hooks")
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "import os, signal\n"
        "from small_run import *\n"
        "from estimator_hooks import InMemoryEvaluatorHook\n"
        "if sys.argv[3] == 'kill': signal_at('name', 2, signal.SIGKILL)\n"
        "estimator = estimator_of(sys.argv[1])\n"
        "hook = InMemoryEvaluatorHook(estimator, batches(1), every_n_iter=5)\n"
        "estimator.train(batches(None), hooks=[hook], max_steps=10)\n"
    )
    assert hooks.InMemoryEvaluatorHook.__name__ in code
    for how in ("kill", "end"):
        arguments = [sys.executable, "-c", code, str(tmp_path / "run"), str(SCRIPT.parent), how]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == (-signal.SIGKILL if how == "kill" else 0), done.stderr
    assert points(tmp_path / "run" / "eval")["loss"] == [0, 5, 10]


@pytest.mark.slow
def test_a_frozen_run_that_another_one_replaced_saves_and_deletes_nothing(tmp_path: Path, whole: Any) -> None:
    run = tmp_path / "run"
    frozen = started(run, "name", 3, "SIGSTOP")  # recorded, but the directory does not have its name yet
    assert frozen.stdout is not None
    assert frozen.stdout.readline() == "now\n"
    (run / "run.lock").unlink()
    train(str(run), STEPS)
    left, journal = what_is_left(run), sorted(path.name for path in (run / "journal").iterdir())
    os.kill(frozen.pid, signal.SIGCONT)
    _, errors = frozen.communicate(timeout=120)
    assert frozen.returncode == 1
    assert f"Another run has taken over {run}: process {os.getpid()} on" in errors
    assert what_is_left(run) == left == whole
    assert sorted(path.name for path in (run / "journal").iterdir()) == journal
    assert audit(run).findings == ()


class AtStep(Hook):
    """Calls a function at a step."""

    def __init__(self, step: int, act: Any) -> None:
        self._step, self._act = step, act

    def next_step(self, step: int) -> int | None:
        return self._step if step < self._step else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self._act()


def test_a_run_whose_epoch_has_passed_stops_within_one_publish(tmp_path: Path) -> None:
    run = tmp_path / "run"
    estimator = estimator_of(str(run))
    hook = AtStep(7, lambda: take_over(LocalStorage(run), "the successor", lambda lineage: max(lineage.saved)))
    with pytest.raises(SupersededError, match="the successor"):
        estimator.train(batches(None), hooks=[hook], max_steps=100)
    lineage = read_lineage(LocalStorage(run))
    assert lineage.epoch == 2
    assert lineage.ended is None
    assert 10 not in lineage.saved
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == sorted(map(str, lineage.saved))


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_model_dir_that_goes_away_stops_the_run_and_is_not_made_again(tmp_path: Path, how: str) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"

    def go() -> None:
        while 5 not in read_lineage(LocalStorage(run)).saved:  # a later save would write into the removed one
            time.sleep(0.01)
        while how == "removed" and run.exists():  # files in progress may appear and disappear meanwhile
            shutil.rmtree(run, ignore_errors=True)
        if how == "removed":
            return
        run.rename(elsewhere)
        if how == "replaced":
            run.mkdir()

    with pytest.raises(StorageGoneError, match="removed" if how != "moved" else "was removed, renamed or unmounted"):
        estimator_of(str(run)).train(batches(None), hooks=[AtStep(7, go)], max_steps=100)
    assert list(run.iterdir()) == [] if how == "replaced" else not run.exists()


def test_a_removed_event_file_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = tmp_path / "run"

    def go() -> None:
        next(run.glob("events.*")).unlink()

    with caplog.at_level(logging.ERROR, logger="estimator_core"):
        estimator_of(str(run)).train(batches(None), hooks=[AtStep(7, go)], max_steps=15)
    assert "was removed or replaced while the run wrote it" in caplog.text
    assert points(run)["loss"][-1] == 15
    assert audit(run).findings == ()


def test_a_copy_under_a_later_name_is_not_the_newest(tmp_path: Path, trained: Path, capsys: Any) -> None:
    run = copied(trained, tmp_path / "run")
    shutil.copytree(run / "checkpoints" / "5", run / "checkpoints" / "99")
    assert latest_checkpoint(run) == str(run / "checkpoints" / "10")
    assert [Path(path).name for path in all_checkpoints(run)] == ["5", "10"]
    assert [path.name for path in unnamed(run)] == ["99"]
    main(["checkpoints", str(run)])
    assert "NOT USED" in capsys.readouterr().out
    shutil.rmtree(run / "journal")
    shutil.rmtree(run / "snapshots", ignore_errors=True)
    (run / "identity").unlink()
    assert latest_checkpoint(run) == str(run / "checkpoints" / "10")  # identified by its manifest


@pytest.mark.parametrize("with_journal", [True, False])
@pytest.mark.parametrize("what", ["fifo", "link", "manifest fifo", "manifest link", "file fifo", "linked folder"])
def test_links_and_fifos_are_refused_and_nobody_waits(
    tmp_path: Path, trained: Path, what: str, with_journal: bool
) -> None:
    run = copied(trained, tmp_path / "run")
    if not with_journal:
        shutil.rmtree(run / "journal")
        (run / "identity").unlink()
    place = run / "checkpoints" / "10"
    kept = place.rename(tmp_path / "kept")
    if what == "fifo":
        os.mkfifo(place)
    elif what == "link":
        place.symlink_to(kept)
    else:
        shutil.copytree(kept, place)
        name = "input.json" if what == "file fifo" else "manifest.json"
        if what == "linked folder":
            (place / "more").symlink_to(kept)
            name = "more"
        else:
            (place / name).unlink()
        if what == "linked folder":
            pass
        elif what == "manifest link":
            (place / name).symlink_to(kept / name)
        else:
            os.mkfifo(place / name)
    estimator = estimator_of(str(run))
    assert estimator.evaluate(batches(1))["global_step"] == 5
    if what not in ("fifo",):
        with pytest.raises(CheckpointCorruptError):
            ec.load_variables(str(place))


def test_a_manifest_that_leads_out_is_refused(tmp_path: Path, trained: Path) -> None:
    from estimator_core._checkpoint.manifest import _seal, dump_json

    run = copied(trained, tmp_path / "run")
    path = run / "checkpoints" / "10" / "manifest.json"
    body = json.loads(path.read_bytes())
    del body["seal"]
    body["files"]["../5/input.json"] = body["files"]["input.json"]
    path.write_bytes(dump_json({**body, "seal": _seal(body)}))
    with pytest.raises(CheckpointCorruptError, match="lies outside"):
        ec.load_variables(str(path.parent))


def test_a_newer_format_is_listed_as_such(tmp_path: Path, trained: Path, capsys: Any) -> None:
    run = copied(trained, tmp_path / "run")
    for name in ("journal", "snapshots"):
        shutil.rmtree(run / name, ignore_errors=True)
    (run / "identity").unlink()
    path = run / "checkpoints" / "10" / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 999'))
    main(["checkpoints", str(run)])
    text = capsys.readouterr().out
    assert "NEWER FORMAT" in text
    assert "DAMAGED" not in text


def test_an_older_model_dir_becomes_the_beginning_of_a_journal(tmp_path: Path, trained: Path) -> None:
    run = copied(trained, tmp_path / "run")
    for name in ("journal", "snapshots"):
        shutil.rmtree(run / name, ignore_errors=True)
    (run / "identity").unlink()
    (run / "checkpoints" / ".writing-20-01234567").mkdir()
    for directory in (run, run / "eval", run / "eval_often"):
        for path in directory.glob("events.*"):
            path.rename(directory / f"events.out.tfevents.{1_700_000_000}.host.000000")
    before = ec.read_eval_metrics(run / "eval")
    train(str(run), STEPS)
    lineage = read_lineage(LocalStorage(run), whole=True)
    assert [took.step for took in lineage.starts] == [10]
    assert sorted(lineage.saved) == [10, 15]
    assert {**ec.read_eval_metrics(run / "eval"), 15: None} == {**before, 15: None}
    assert points(run)["loss"] == list(range(1, 16))
    assert points(run / "eval")["loss"] == [5, 10, 15]
    assert audit(run).findings == ()


def test_a_damaged_journal_that_is_moved_away_costs_nothing(tmp_path: Path, trained: Path) -> None:
    before = what_is_left(trained)
    shutil.copytree(trained, tmp_path / "run")
    third = sorted((tmp_path / "run" / "journal").rglob("0*"))[2]
    third.write_bytes(third.read_bytes()[:-9])
    with pytest.raises(
        JournalError, match=r"0000000002 is torn or damaged.*move `journal` and `snapshots` away: the next"
    ):
        train(str(tmp_path / "run"), STEPS)
    (tmp_path / "run" / "journal").rename(tmp_path / "away")
    train(str(tmp_path / "run"), STEPS)
    after = what_is_left(tmp_path / "run")
    assert after["checkpoints"] == ["10", "15"]
    for name, results in before["results"].items():
        assert {step: after["results"][name][step] for step in results} == results
    assert after["points"][".:loss"] == list(range(1, STEPS + 1))
    assert audit(tmp_path / "run").findings == ()


def test_results_are_rewritten_where_they_differ_from_the_journal(tmp_path: Path, trained: Path) -> None:
    run = copied(trained, tmp_path / "run")
    path = run / "eval" / "metrics.jsonl"
    before = ec.read_eval_metrics(run / "eval")
    path.write_text('{"global_step": 5, "metrics": {"loss": 77.0}}\n[]\n{"resumed_from": 3}\n')
    (run / "run.json").write_text("[]")
    train(str(run), STEPS)
    after = ec.read_eval_metrics(run / "eval")
    assert {step: after[step] for step in (5, 10)} == before
    assert [start["step"] for start in json.loads((run / "run.json").read_text())["starts"]] == [0, 10]


def test_a_run_without_checkpoints_takes_an_epoch_and_records_its_event_files(tmp_path: Path) -> None:
    run = tmp_path / "run"
    estimator_of(str(run), save_checkpoints_steps=None, save_checkpoints_secs=None).train(batches(None), max_steps=5)
    lineage = lineage_of(run)
    assert lineage is not None
    assert (lineage.epoch, lineage.saved) == (1, {})
    assert lineage.ended is not None
    assert [(told.directory, told.step) for told in lineage.segments] == [("", 5)]
    assert audit(run).findings == ()


def test_runs_in_directories_below_keep_their_event_files(tmp_path: Path) -> None:
    """`estimator tabular train` writes such a run: a linear model in the model_dir of another model."""
    run = tmp_path / "run"
    inner = (run / "linear_baseline", run / "deep" / "er")
    for place in (run, *inner):
        train(str(place), 5)
    below = {path: path.read_bytes() for place in inner for path in place.rglob("events.out.*")}
    assert len(below) == 6  # those of the training and of two evaluations each
    assert audit(run).findings == ()
    train(str(run), STEPS)
    assert main(["audit", str(run), "--repair"]) == 0
    assert {path: path.read_bytes() for path in below} == below
    assert all(audit(place).findings == () for place in (run, *inner))


def test_a_model_dir_below_in_which_nobody_has_trained_keeps_its_event_files(tmp_path: Path) -> None:
    """An Estimator that evaluates a checkpoint of the surrounding run has such a model_dir."""
    run = tmp_path / "run"
    train(str(run), 5)
    inner = estimator_of(str(run / "inner"))
    inner.evaluate(batches(1), checkpoint_path=latest_checkpoint(run))
    (written,) = (run / "inner").rglob("events.out.*")
    content = written.read_bytes()
    train(str(run), STEPS)
    assert main(["audit", str(run), "--repair"]) == 0
    assert written.read_bytes() == content
    assert audit(run).findings == ()


def test_a_directory_named_journal_is_no_journal(tmp_path: Path) -> None:
    """The event files that a run wrote next to it are trimmed as usual."""
    run = tmp_path / "run"
    train(str(run), 5)
    (run / "logs" / "journal").mkdir(parents=True)
    left = run / "logs" / "events.out.tfevents.0000000001.e000001"
    left.write_bytes(b"of a killed run")
    assert [finding.path for finding in audit(run).findings] == ["logs/" + left.name]
    train(str(run), STEPS)
    assert not left.exists()


def test_retention_deletes_what_this_lineage_names_and_nothing_else(tmp_path: Path, trained: Path) -> None:
    run = copied(trained, tmp_path / "run")
    shutil.copytree(run / "checkpoints" / "5", run / "checkpoints" / "3")
    train(str(run), 25)
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["20", "25", "3"]


def test_a_copy_in_the_way_of_a_save_is_kept_under_another_name(tmp_path: Path, trained: Path) -> None:
    run = copied(trained, tmp_path / "run")
    shutil.copytree(run / "checkpoints" / "5", run / "checkpoints" / "15")
    train(str(run), 15)
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names[:2] == ["10", "15"]
    assert names[2].startswith("unnamed-15-")
    assert read_checkpoint(str(run / "checkpoints" / "15")).clock[0] == 15


DAMAGE: dict[str, tuple[Any, bool]] = {
    "torn record": (lambda run: next(run.glob("journal/*/0000000002")).write_bytes(b"{"), False),
    "unnamed checkpoint": (lambda run: shutil.copytree(run / "checkpoints" / "5", run / "checkpoints" / "99"), False),
    "missing checkpoint": (lambda run: shutil.rmtree(run / "checkpoints" / "5"), False),
    "wrong digest": (lambda run: (run / "checkpoints" / "5" / "manifest.json").write_text("{}"), False),
    "damaged file": (lambda run: (run / "checkpoints" / "5" / "input.json").write_text("{}"), False),
    "bytes beyond": (lambda run: append(next(run.glob("events.*")), b"more"), True),
    "event file removed": (lambda run: next(run.glob("events.*")).unlink(), False),
    "work directory": (lambda run: (run / "checkpoints" / ".writing-20-e000001-01234567").mkdir(), True),
    "results": (lambda run: append(run / "eval" / "metrics.jsonl", b"{}\n"), True),
    "owed name": (lambda run: unname(run, 10), True),
    "no journal": (lambda run: (run / "identity").unlink(), False),
}


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def unname(run: Path, step: int) -> None:
    place = read_lineage(LocalStorage(run)).saved[step].place
    (run / "checkpoints" / str(step)).rename(run / place)


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_audit_finds_and_mends(tmp_path: Path, trained: Path, capsys: Any, damage: str) -> None:
    run = copied(trained, tmp_path / "run")
    assert main(["audit", str(run)]) == 0
    damaged, mendable = DAMAGE[damage]
    damaged(run)
    assert main(["audit", str(run), "--json"]) == 1
    text = capsys.readouterr().out
    found = json.loads(text[text.index("{") :])
    assert [finding["mendable"] for finding in found["findings"]] == [mendable]
    assert main(["audit", str(run), "--repair"]) == (0 if mendable else 1)
    if mendable:
        assert read_lineage(LocalStorage(run)).ended is not None
        train(str(run), STEPS)
        assert np.array_equal(points(run)["loss"], range(1, 16))


def test_what_is_published_by_a_run_names_it(trained: Path) -> None:
    (took,) = read_lineage(LocalStorage(trained)).starts
    assert isinstance(took, Took)
    assert took.writer.startswith(f"process {os.getpid()} on ")


def test_a_store_of_another_program_leaves_the_checkpoints_of_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    estimator_of(str(run)).train(batches(None), max_steps=20)
    saved = sorted(read_lineage(LocalStorage(run)).saved)

    def save(step: int) -> None:
        items = CheckpointItems(clock=np.array([step, 0, 0, 0], np.uint32), variables={"x": np.ones(2, np.float32)})
        with CheckpointStore(run, keep_max=1) as store:
            store.save(step, items)

    save(100)
    save(101)
    assert sorted(int(path.name) for path in (run / "checkpoints").iterdir()) == [*saved, 101]
    with pytest.raises(CheckpointError, match="saved by the training run of this model_dir and is not replaced"):
        save(20)
    assert latest_checkpoint(run) == str(run / "checkpoints" / "20")
