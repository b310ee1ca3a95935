"""Tests of the second attempt of a save. All processes make it, or none, and all raise the same error if it fails."""

import errno
import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threads import in_threads

from estimator_core._checkpoint import commit
from estimator_core._checkpoint.journal_shelf import JournalShelf
from estimator_core._checkpoint.shelf import Publisher
from estimator_core._journal.writer import Journal, take_over
from estimator_core._storage.local import LocalStorage
from estimator_core.checkpoint import CheckpointItems, CheckpointStore, read_checkpoint
from estimator_core.coordinator import ALONE
from estimator_core.errors import CheckpointError, NanLossDuringTrainingError, SupersededError
from estimator_core.storage import StorageError

IO = OSError(errno.EIO, "Input/output error")
FULL = OSError(errno.ENOSPC, "No space left on device")
READ_ONLY = OSError(errno.EROFS, "Read-only file system")
#: The files that fail in the first test of each: a pack of either process, and what the chief writes and publishes.
NAMES = {"arrays-0.pack": 0, "arrays-1.pack": 1, "manifest.json": 0, "1": 0}


class Writes:
    """The files and directories that get their final names.

    `fails` has the errors of each name, in the order of the attempts. None is an attempt without an error.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails: dict[str, list[OSError | None]] = {}
        self.paths: list[Path] = []
        for name in ("replace", "rename"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name), lambda source, target: Path(target)))
        manifest = self._watched(commit.write_manifest, lambda directory, manifest: directory / "manifest.json")
        monkeypatch.setattr(commit, "write_manifest", manifest)
        monkeypatch.setattr(commit, "_PAUSE_SECS", 0)

    def _watched(self, real: Callable[..., None], path_of: Callable[..., Path]) -> Callable[..., None]:
        def watched(*arguments: Any, **others: Any) -> None:
            path = path_of(*arguments)
            self.paths.append(path)
            errors = self.fails.get(path.name)
            error = errors.pop(0) if errors else None
            if error is not None:
                raise error
            real(*arguments, **others)

        return watched

    def attempts(self, name: str) -> int:
        """Returns the number of directories in which a file was written."""
        return len({path.parent for path in self.paths if path.name == name})


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    return Writes(monkeypatch)


def whole(step: int) -> np.ndarray:
    return np.full((40, 3), step, np.float32)


def items(step: int, processes: Any, *, bad: bool = False) -> CheckpointItems:
    """Returns the items of a process, which holds some rows of an array."""
    array = whole(step)
    if bad:
        array[:] = np.nan
    if processes.count > 1:
        rows = 40 // processes.count
        own = slice(processes.index * rows, (processes.index + 1) * rows)
        shard = SimpleNamespace(replica_id=0, index=(own, slice(None)), data=array[own])
        array = SimpleNamespace(
            shape=array.shape, is_fully_addressable=False, is_fully_replicated=False, addressable_shards=[shard]
        )
    return CheckpointItems(clock=np.array([step, 0, 0, 0], np.uint32), variables={"w": array})


Settings = Callable[[int], Mapping[str, Any]]


def in_one_dir(model_dir: Path) -> Settings:
    return lambda index: {"model_dir": model_dir}


def save(settings: Settings, *steps: int, count: int = 2, bad: int | None = None) -> list[Any]:
    """Saves steps in several processes. Returns the error of each, or the path of its newest checkpoint."""

    def one(processes: Any) -> Any:
        path = None
        try:
            with CheckpointStore(**settings(processes.index), processes=processes) as store:
                for step in steps:
                    path = store.save(step, items(step, processes, bad=bad == processes.index)).path
        except Exception as error:
            return error
        return path

    return in_threads(count, one) if count > 1 else [one(ALONE)]


def names(model_dir: Path) -> list[str]:
    return sorted(path.name for path in (model_dir / "checkpoints").iterdir())


def holds(model_dir: Path, *steps: int) -> bool:
    """Returns whether these are the checkpoints, and their arrays are those that were saved."""
    return names(model_dir) == [str(step) for step in steps] and all(
        np.array_equal(read_checkpoint(model_dir / "checkpoints" / str(step)).variables["w"], whole(step))
        for step in steps
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_of_one_process_that_passes_costs_nothing(
    tmp_path: Path, writes: Writes, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    writes.fails[name] = [IO]
    assert save(in_one_dir(tmp_path), 1) == [str(tmp_path / "checkpoints" / "1")] * 2
    assert holds(tmp_path, 1)
    assert writes.attempts("arrays-1.pack") == 2
    told = f"failed (Process {NAMES[name]}: OSError: [Errno 5] Input/output error); the write is retried once"
    assert [told in record.getMessage() for record in caplog.records if "retried once" in record.getMessage()] == [
        True
    ] * 2


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_that_stays_is_one_error_in_all(tmp_path: Path, writes: Writes, name: str) -> None:
    writes.fails[name] = [IO, IO]
    first, second = save(in_one_dir(tmp_path), 1)
    assert type(first) is type(second) is CheckpointError
    assert str(first) == str(second)
    begin = (
        f"Process {NAMES[name]}: A checkpoint could not be written to {tmp_path / 'checkpoints'} (OSError: [Errno 5]"
    )
    assert str(first).startswith(begin)
    assert names(tmp_path) == []
    assert writes.attempts("arrays-1.pack") == 2
    assert len(save(in_one_dir(tmp_path), 2)) == 2
    assert holds(tmp_path, 2)


def test_the_error_of_the_second_attempt_is_raised(tmp_path: Path, writes: Writes) -> None:
    writes.fails = {"arrays-1.pack": [IO], "arrays-0.pack": [None, FULL]}
    first, second = save(in_one_dir(tmp_path), 1)
    assert str(first) == str(second)
    assert str(first).startswith("Process 0: ")
    assert "No space left on device" in str(first)
    assert "Free some space" in str(first)
    assert names(tmp_path) == []


def test_each_save_has_a_second_attempt(tmp_path: Path, writes: Writes) -> None:
    writes.fails["arrays-1.pack"] = [IO, None, IO]
    assert save(in_one_dir(tmp_path), 1, 2) == [str(tmp_path / "checkpoints" / "2")] * 2
    assert holds(tmp_path, 1, 2)
    assert writes.attempts("arrays-1.pack") == 4


def test_what_does_not_pass_in_one_ends_the_save_in_all(tmp_path: Path, writes: Writes) -> None:
    writes.fails = {"arrays-0.pack": [IO], "arrays-1.pack": [READ_ONLY]}
    first, second = save(in_one_dir(tmp_path), 1)
    assert str(first) == str(second)
    assert str(first).startswith("Process 1: ")
    assert "Use a model_dir that can be written" in str(first)
    assert writes.attempts("arrays-0.pack") == 1


def test_a_state_that_is_not_finite_is_not_tried_again(tmp_path: Path, writes: Writes) -> None:
    writes.fails["arrays-0.pack"] = [IO]
    for error in save(in_one_dir(tmp_path), 1, bad=1):
        assert isinstance(error, NanLossDuringTrainingError)
        assert error.step == 1
        assert str(error).startswith("Checkpoint 1 is not written: NaN or infinity in variables")
    assert names(tmp_path) == []
    assert writes.attempts("arrays-0.pack") == 1


def journal_of(model_dir: Path, writer: str) -> Journal:
    return take_over(LocalStorage(model_dir), writer, lambda lineage: max(lineage.saved, default=0))


def of_journal(model_dir: Path, **others: Any) -> Settings:
    shelf = JournalShelf(model_dir / "checkpoints", journal_of(model_dir, "one"))
    return lambda index: {"model_dir": model_dir, **others, **({"shelf": shelf} if index == 0 else {})}


@pytest.mark.parametrize(("count", "full_every"), [(1, 1), (1, 2), (2, 1)])
def test_a_checkpoint_that_is_recorded_twice_is_kept(
    tmp_path: Path, writes: Writes, count: int, full_every: int
) -> None:
    writes.fails["1"] = [IO]  # the record of the first attempt is written, and that of the second retires it
    (path, *others) = save(of_journal(tmp_path, full_every=full_every), 1, count=count)
    assert path == str(tmp_path / "checkpoints" / "1")
    assert others in ([], [path])
    assert np.array_equal(read_checkpoint(path).variables["w"], whole(1))
    later = JournalShelf(tmp_path / "checkpoints", journal_of(tmp_path, "two"))
    later.clean_up()
    later.settle()
    assert holds(tmp_path, 1)


@pytest.mark.parametrize("count", [1, 2])
def test_a_journal_that_cannot_be_written_ends_the_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    settings, records = of_journal(tmp_path), []

    def fails(self: LocalStorage, key: str, data: bytes) -> None:
        records.append(key)
        raise StorageError(f"{self.url}: {key}: Input/output error.") from IO

    monkeypatch.setattr(LocalStorage, "put_new", fails)
    for error in save(settings, 1, count=count):
        assert type(error) is CheckpointError
        assert "A checkpoint could not be written" in str(error)
    assert len(records) == 1  # the record may exist, so the next save must read it first


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_left_of_what_no_record_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    settings = of_journal(tmp_path)
    errors = [IO]

    def sync(*_: object) -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setattr("estimator_core._checkpoint.journal_shelf.sync_event_files", sync)
    monkeypatch.setattr(commit, "_PAUSE_SECS", 0)
    save(settings, 1, count=count)
    assert holds(tmp_path, 1)


def test_a_run_that_has_taken_over_ends_all(tmp_path: Path, writes: Writes) -> None:
    settings = of_journal(tmp_path)
    journal_of(tmp_path, "another one")
    for error in save(settings, 1):
        assert isinstance(error, SupersededError)
        assert "another one" in str(error)
    assert writes.attempts("arrays-1.pack") == 1


class Away:
    """A directory in the place of a store. Each process has its own model_dir, and copies its packs here."""

    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        self.folder, self._error, self._places = folder, error, itertools.count()

    def settings(self, index: int) -> Mapping[str, Any]:
        publisher = Publisher(
            place=lambda step: f"{step}-{next(self._places)}",
            begin=lambda work: work.mkdir(parents=True),
            send=lambda work, place: self._copy(work, self.folder / "store" / place, "*.pack"),
            publish=self._publish,
            follow=self._follow,
            drop=shutil.rmtree,
        )
        return {"model_dir": self.folder / str(index), "publisher": publisher}

    def _copy(self, source: Path, target: Path, names: str) -> None:
        target.mkdir(parents=True, exist_ok=True)
        for path in source.glob(names):
            shutil.copy(path, target / path.name)

    def _publish(self, path: Path, place: str) -> None:
        if self._error is not None:
            raise self._error
        self._copy(path, self.folder / "store" / place, "*.json")

    def _follow(self, work: Path, place: str, shelf: Any, step: int, kept: Any) -> None:
        self._copy(self.folder / "store" / place, work, "*")
        shelf.publish(work, step, (), ())


@pytest.mark.parametrize("name", ["arrays-1.pack", "manifest.json"])
def test_processes_with_their_own_directories_try_again(tmp_path: Path, writes: Writes, name: str) -> None:
    writes.fails[name] = [IO]
    paths = save(Away(tmp_path).settings, 1)
    assert paths == [str(tmp_path / str(index) / "checkpoints" / "1") for index in (0, 1)]
    assert names(tmp_path / "0") == names(tmp_path / "1") == ["1"]
    assert holds(tmp_path / "1", 1)


@pytest.mark.parametrize("error", [StorageError("shelf: the server does not answer."), IO])
def test_what_the_publisher_raises_is_not_tried_again(tmp_path: Path, writes: Writes, error: Exception) -> None:
    first, second = save(Away(tmp_path, error).settings, 1)
    assert type(first) is type(second) is CheckpointError
    assert str(first) == str(second) == f"Process 0: {error}"
    assert writes.attempts("arrays-1.pack") == 1


@pytest.mark.parametrize("full_every", [1, 2])
def test_a_single_process_names_none(tmp_path: Path, writes: Writes, full_every: int) -> None:
    writes.fails["manifest.json"] = [FULL, FULL]
    settings = {"model_dir": tmp_path, "full_every": full_every}
    (error,) = save(lambda index: settings, 1, count=1)
    assert type(error) is CheckpointError
    assert str(error).startswith(f"A checkpoint could not be written to {tmp_path / 'checkpoints'} (OSError")
    assert error.__cause__ is FULL
    assert names(tmp_path) == []
