"""Tests that a model_dir must be opened as it was written: through a URL, or at a path. Some URLs are local."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import estimator_core as ec
from estimator_core.checkpoint import all_checkpoints, checkpoint_step
from estimator_core.cli import main
from estimator_core.errors import ArgumentError, CheckpointError, CheckpointNotFoundError, EstimatorError, ExportError
from estimator_core.storage import copied_files, local_copy, open_storage
from estimator_storage.at_urls.checkpoints import read_here
from plugins.storage.tests import runs
from plugins.storage.tests.remote import shelves
from plugins.storage.tests.remote.shelves import Shelf


def receiver() -> Callable[..., object]:
    return ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3), "float32")})


#: The operations on a model_dir at a location, each with a directory for its results.
DOORS: dict[str, Callable[[str, Path], object]] = {
    "train": lambda where, beside: runs.estimator(where).train(runs.batches, steps=1),
    "train up to a step": lambda where, beside: runs.estimator(where).train(runs.batches, max_steps=9),
    "train up to a step that it has": lambda where, beside: runs.estimator(where).train(runs.batches, max_steps=2),
    "evaluate": lambda where, beside: runs.estimator(where).evaluate(runs.held_out),
    "predict": lambda where, beside: list(runs.estimator(where).predict(runs.held_out)),
    "export": lambda where, beside: runs.estimator(where).export_saved_model(str(beside / "export"), receiver()),
    "a value": lambda where, beside: runs.estimator(where).get_variable_value("weights"),
    "load_variables": lambda where, beside: ec.load_variables(where),
    "warm start": lambda where, beside: ec.Estimator(runs.model_fn, str(beside / "warm"), warm_start_from=where).train(
        runs.batches, steps=1
    ),
}


@pytest.mark.plugins
def test_an_export_that_is_not_at_its_url_is_an_export_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"nothing at file://.*/absent\..*Correct the URL of the export\."):
        ec.export.load(f"file://{tmp_path}/absent")


EVERY_DOOR = pytest.mark.parametrize(
    "door",
    [pytest.param(door, marks=pytest.mark.plugins) if door in ("export", "warm start") else door for door in DOORS],
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes one model_dir at a path, and one through a URL."""
    folder = tmp_path_factory.mktemp("written")
    runs.estimator(str(folder / "path")).train(runs.batches, max_steps=5)
    runs.estimator(f"file://{folder}/url").train(runs.batches, max_steps=5)
    return folder


@EVERY_DOOR
@pytest.mark.parametrize("lost", [("journal",), ("journal", "identity")])
def test_one_that_has_lost_its_journal_is_not_started_anew(
    door: str, lost: tuple[str, ...], written: Path, tmp_path: Path
) -> None:
    shutil.copytree(written / "url", tmp_path / "run")
    for name in lost:
        path = tmp_path / "run" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = files(tmp_path / "run")
    with pytest.raises(CheckpointError, match="has data of checkpoints, but no journal"):
        DOORS[door](f"file://{tmp_path}/run", tmp_path)
    assert files(tmp_path / "run") == before


def test_a_first_run_may_have_a_folder_of_the_users_data_beside_it(tmp_path: Path) -> None:
    (tmp_path / "run" / "data" / "2026").mkdir(parents=True)
    (tmp_path / "run" / "data" / "2026" / "rows.csv").write_text("a,b\n1,2\n")
    url = f"file://{tmp_path}/run"
    assert runs.estimator(url).train(runs.batches, max_steps=2).latest_checkpoint() is not None
    assert (tmp_path / "run" / "data" / "2026" / "rows.csv").read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize("door", ["train", "evaluate", "predict"])
@pytest.mark.parametrize("inside", ["checkpoints", "checkpoints/5", "checkpoints/5/mine"])
def test_a_checkpoint_at_a_url_is_no_model_dir(written: Path, tmp_path: Path, inside: str, door: str) -> None:
    run = f"file://{written}/url"
    with pytest.raises(ArgumentError, match=f"is inside the run {run}, .* Give model_dir='{run}'"):
        DOORS[door](f"{run}/{inside}", tmp_path)


def files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.suffix != ".lock" and path.name != ".lock"
    }


@EVERY_DOOR
def test_one_of_a_path_is_not_opened_through_a_url(door: str, written: Path, tmp_path: Path) -> None:
    run = shutil.copytree(written / "path", tmp_path / "run")
    before = files(run)
    with pytest.raises(
        CheckpointError, match=rf"(?m)^{run} was written at a path, .*Name it without file://: {run}\.$"
    ):
        DOORS[door](f"file://{run}", tmp_path)
    assert files(run) == before


@EVERY_DOOR
def test_one_of_a_url_is_not_opened_at_a_path(door: str, written: Path, tmp_path: Path) -> None:
    run = shutil.copytree(written / "url", tmp_path / "run")
    before = files(run)
    with pytest.raises(CheckpointError, match=rf"^{run} was written through a URL, .*Name it file://{run}\."):
        DOORS[door](str(run), tmp_path)
    assert files(run) == before
    DOORS[door](f"file://{run}", tmp_path)  # the advice of the message works, for a copy too


@pytest.mark.parametrize("command", ["audit", "checkpoints"])
def test_commands_say_so_too(command: str, written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, f"file://{written}/path"]) == 1
    assert f"{written}/path was written at a path" in capsys.readouterr().err
    assert main([command, str(written / "url")]) == 1
    assert f"{written}/url was written through a URL" in capsys.readouterr().err
    assert main([command, str(written / "path")]) == 0
    assert main([command, f"file://{written}/url"]) == 0


@pytest.mark.parametrize("journal", [True, False], ids=["with its journal", "of an older release"])
def test_a_directory_that_was_copied_to_a_bucket(journal: bool, written: Path, tmp_path: Path) -> None:
    run = shutil.copytree(written / "path", tmp_path / "run")
    if not journal:
        for name in ("journal", "snapshots"):
            shutil.rmtree(run / name, ignore_errors=True)
        (run / "identity").unlink()
    storage = Shelf(f"{shelves.PREFIX}{run}")
    with pytest.raises(CheckpointError, match=r"was written at a path, .*Copy it to a directory of this machine"):
        read_here(storage)


@pytest.mark.plugins
@pytest.mark.parametrize("name", ["checkpoints/5", "checkpoints/checkpoints"])
@EVERY_DOOR
def test_a_model_dir_may_have_the_name_of_a_checkpoint(door: str, name: str, tmp_path: Path) -> None:
    """Such as `s3://bucket/checkpoints`. It was looked for in the journal of the directory above."""
    url = f"file://{tmp_path}/{name}"
    runs.estimator(url).train(runs.batches, max_steps=2)
    assert DOORS[door](url, tmp_path) is not None
    assert ec.load_variables(f"{url}/checkpoints/2")


@pytest.mark.plugins
def test_a_model_dir_without_a_checkpoint_is_named_by_its_url(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/new"
    calls = ("evaluate", "predict", "export", "a value")
    for door in calls:
        with pytest.raises(CheckpointNotFoundError, match=f"Could not find trained model in model_dir: {url}\\."):
            DOORS[door](url, tmp_path)


@pytest.mark.parametrize("form", ["file://localhost{}", "file://LocalHost{}", "FILE://{}", "file://{}", "file:{}"])
def test_forms_of_a_url_of_this_machine(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    url = form.format(tmp_path / "there")
    runs.estimator(f"{url}/run").train(runs.batches, max_steps=1)
    open_storage(url).put("rows.csv", b"x")
    assert {entry.key for entry in open_storage(tmp_path / "there").list("")} >= {"rows.csv"}
    assert (tmp_path / "there" / "run" / "journal").is_dir()
    assert [path.read_bytes() for path in copied_files(f"{url}/*.csv")] == [b"x"]
    assert (local_copy(url) / "rows.csv").is_file()
    assert list(ec.load_variables(f"{url}/run")) == ["weights"]
    assert list(work.iterdir()) == []


@pytest.mark.plugins
def test_a_url_that_lost_a_slash_is_no_directory_of_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Path` turns `s3://bucket` into `s3:/bucket`.

    As a local directory, the run would be lost with the disk of the machine.
    """
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    url = str(Path(f"file://{tmp_path}/there"))
    estimator = runs.estimator(f"{url}/run")
    estimator.train(runs.batches, max_steps=1)
    export = estimator.export_saved_model(f"{url}/export", receiver())
    assert (tmp_path / "there" / "run" / "journal").is_dir()
    assert Path(export).is_relative_to(tmp_path / "there") or export.startswith(f"file://{tmp_path}/there/export/")
    assert list(ec.load_variables(f"{url}/run")) == ["weights"]
    for call in (lambda: ec.Estimator(runs.model_fn, "nowhere:/b/run"), lambda: open_storage("nowhere:/b")):
        with pytest.raises(ArgumentError, match="no installed package provides storage for nowhere://"):
            call()
    assert list(work.iterdir()) == []


def test_a_directory_whose_name_ends_in_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run:", "run:/"):
        with pytest.raises(ArgumentError, match=r"A directory named 'run:' needs its absolute path\."):
            open_storage(name)
    open_storage(tmp_path / "run:").put("rows.csv", b"x")
    assert (tmp_path / "run:" / "rows.csv").is_file()


def test_a_url_below_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_storage("file://~/there").put("rows.csv", b"x")
    assert (tmp_path / "there" / "rows.csv").is_file()
    assert [path.read_bytes() for path in copied_files(str(Path("file://~/there/rows.csv")))] == [b"x"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("file://server/share", "file://server/share names the host 'server'"),
        ("file://runs/one", "names the host 'runs'"),
        ("file://runs", "names the host 'runs'"),
        ("file://", "file:// names no bucket and no directory"),
        ("file://localhost/", "file:// names no bucket and no directory"),
        ("s3://", "s3:// names no bucket and no directory"),
        ("gs:///", "gs:// names no bucket and no directory"),
    ],
)
def test_a_url_of_no_place_or_of_another_host_is_refused(
    url: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=says):
        ec.Estimator(runs.model_fn, url)
    with pytest.raises(ArgumentError, match=says):
        ec.load_variables(url)
    for command in ("audit", "checkpoints"):
        assert main([command, url]) == 2
        assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_are_named_by_their_urls(written: Path) -> None:
    url = f"file://{written}/url"
    steps = [checkpoint_step(path) for path in all_checkpoints(url)]
    assert steps == sorted(read_here(open_storage(url)).saved)
    assert steps[-1] == 5
    assert all_checkpoints(f"{url}/")[-1] == ec.latest_checkpoint(url) == f"{url}/checkpoints/5"
    assert ec.load_variables(f"{url}/checkpoints/5").keys() == {"weights"}


#: Functions that read at a URL where nothing exists.
READERS: dict[str, Callable[[str], object]] = {
    "latest_checkpoint": ec.latest_checkpoint,
    "all_checkpoints": all_checkpoints,
    "load_variables": ec.load_variables,
    "local_copy": local_copy,
    "copied_files": lambda url: copied_files(f"{url}/*.csv"),
    "checkpoints": lambda url: main(["checkpoints", url]),
    "audit": lambda url: main(["audit", url]),
}


@pytest.mark.parametrize("reader", READERS)
def test_who_reads_where_nothing_is_leaves_nothing(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ""
    try:
        found = READERS[reader](f"file://{tmp_path}/typed/wrong")
    except EstimatorError as error:
        found, told = 1, str(error)
    assert found in (None, [], 1)
    assert found != 1 or "There is no directory" in told + capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_results_at_a_url_are_read_by_its_estimator(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/run"
    runs.estimator(url).train(runs.batches, max_steps=5).evaluate(runs.held_out)
    with pytest.raises(ArgumentError, match="An Estimator of this model_dir copies them here"):
        ec.read_eval_metrics(f"{url}/eval")
    assert list(ec.read_eval_metrics(runs.estimator(url).eval_dir())) == [5]
