"""Tests that several processes agree on which checkpoint is intact, although each checks only a share of it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threads import in_threads

from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._checkpoint.newest import Restored, read_latest
from estimator_core._checkpoint.shelf import Publisher
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.resuming import find_start
from estimator_core._packs import packs
from estimator_core._packs.fetch import StoredArray
from estimator_core._packs.packs import Packs
from estimator_core._storage.local import LocalStorage
from estimator_core.checkpoint import CheckpointItems, CheckpointStore, load_variables, read_checkpoint
from estimator_core.coordinator import ALONE
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError
from estimator_core.plugins import Plugins
from estimator_core.storage import Data, ObjectMissingError, ShortReadError, StorageError

COUNT = 3


def in_all(do: Callable[[Any], Any]) -> list[Any]:
    """Returns the results of all threads."""
    return in_threads(COUNT, do)


def items(step: int) -> CheckpointItems:
    return CheckpointItems(
        clock=np.array([step, 0, 0, 0], np.uint32),
        variables={f"v{n}": np.full((5, 4), step + n, np.float32) for n in range(6)},
        model_state={"none": np.empty((0, 3)), "count": np.array(step)},
        hooks={"Best": {"seen": np.arange(3)}},
        input={"examples": step},
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    def save(processes: Any) -> None:
        with CheckpointStore(tmp_path, processes=processes) as store:
            for step in (1, 2):
                store.save(step, items(step)).wait()

    in_all(save)
    return tmp_path


def test_one_that_cannot_bring_what_was_saved_ends_all(tmp_path: Path) -> None:
    def begin(work: Path) -> None:
        work.mkdir(parents=True)

    def follow(*arguments: object) -> None:
        raise StorageError("shelf: the server does not answer.")

    def save(processes: Any) -> str:
        publisher = Publisher(place=lambda step: f"data/{step}", begin=begin)
        if processes.index == 1:
            publisher = replace(publisher, follow=follow)
        store = CheckpointStore(tmp_path / str(processes.index), processes=processes, publisher=publisher)
        with store, pytest.raises(CheckpointError) as caught:
            store.save(1, items(1)).wait()
        return str(caught.value)

    (said,) = set(in_all(save))
    assert said.startswith("Process 1: checkpoint 1 is saved, but this process could not bring it")
    assert said.endswith("shelf: the server does not answer.")
    assert load_variables(tmp_path / "0")["v5"][0, 0] == 6


def all_pieces(saved: Path) -> tuple[Path, list[Any]]:
    directory = saved / "checkpoints" / "2"
    packs = Packs(storage=LocalStorage(directory), prefix="", where="", entries=read_manifest(directory).packs)
    return directory, packs.pieces()


def test_what_is_read_together_is_what_was_saved(saved: Path) -> None:
    for found in in_all(lambda processes: read_latest(saved, processes=processes)):
        assert found.step == 2
        assert isinstance(found.items.variables["v1"], StoredArray)
        assert np.asarray(found.items.variables["v1"]).tolist() == [[3] * 4] * 5
        assert np.asarray(found.items.model_state["none"]).shape == (0, 3)
        assert found.items.hooks["Best"]["seen"].tolist() == [0, 1, 2]
        assert found.items.input == {"examples": 2}
    assert load_variables(saved)["v5"][0, 0] == 7
    assert int(read_checkpoint(saved).model_state["count"]) == 2


def test_damage_in_the_share_of_one_makes_all_take_the_one_before(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory, pieces = all_pieces(saved)
    name, piece = next((name, piece) for name, piece in pieces if piece.path == "v3")
    data = bytearray((directory / name).read_bytes())
    data[piece.offset + 17] ^= 4
    (directory / name).write_bytes(data)
    found: list[Restored] = in_all(lambda processes: read_latest(saved, set_aside=True, processes=processes))
    assert [one.step for one in found] == [1] * COUNT
    assert "variables 'v3' at ((0, 5), (0, 4)) in arrays-0.pack differs from what was saved" in caplog.text
    assert sorted(path.name for path in directory.parent.iterdir()) == ["1", "damaged-2"]


@pytest.mark.parametrize("damage", ["gone", "torn", "index"])
def test_a_pack_that_is_not_whole_is_noticed(saved: Path, damage: str) -> None:
    pack = saved / "checkpoints" / "2" / "arrays-0.pack"
    data = pack.read_bytes()
    if damage == "gone":
        pack.unlink()
    else:
        pack.write_bytes(data[:-7] if damage == "torn" else data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    with pytest.raises(CheckpointCorruptError, match=r"checkpoints/2 .*damaged|arrays-0\.pack of the checkpoint"):
        read_checkpoint(saved / "checkpoints" / "2")
    assert [one.step for one in in_all(lambda processes: read_latest(saved, processes=processes))] == [1] * COUNT


def test_a_checkpoint_that_is_altered_after_it_was_verified_is_not_used(saved: Path) -> None:
    found = read_latest(saved)
    assert found is not None
    directory, pieces = all_pieces(saved)
    for name, piece in pieces:
        data = bytearray((directory / name).read_bytes())
        data[piece.offset] ^= 1
        (directory / name).write_bytes(data)
    with pytest.raises(CheckpointCorruptError, match="'v2' at"):
        np.asarray(found.items.variables["v2"])


class FailsOnce:
    """A store of packs that one of the processes cannot read."""

    def __init__(self, folder: Path, error: Exception) -> None:
        self._packs, self._errors = LocalStorage(folder), [error]

    def get_ranges(self, key: str, ranges: Any) -> list[Data]:
        if self._errors:
            raise self._errors.pop()
        return self._packs.get_ranges(key, ranges)


@pytest.fixture
def failing(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Makes the store of the packs of the newest checkpoint raise an error once."""

    def failing(error: Exception) -> None:
        directory, store = saved / "checkpoints" / "2", saved / "store"
        store.mkdir()
        for pack in directory.glob("*.pack"):
            pack.rename(store / pack.name)
        monkeypatch.setattr(packs, "_away", {})
        packs.leave_away(directory, FailsOnce(store, error))

    return failing


def untouched(saved: Path) -> bool:
    """Returns whether the checkpoints still have their names."""
    return sorted(path.name for path in (saved / "checkpoints").iterdir()) == ["1", "2"]


def test_a_store_that_does_not_answer_one_ends_the_call_in_all_and_damages_nothing(
    saved: Path, failing: Callable[[Exception], None], caplog: pytest.LogCaptureFixture
) -> None:
    failing(StorageError("shelf: the server does not answer. Try again."))

    def read(processes: Any) -> str:
        with pytest.raises(StorageError) as caught:
            read_latest(saved, set_aside=True, processes=processes)
        return str(caught.value)

    assert in_all(read) == ["shelf: the server does not answer. Try again."] * COUNT
    assert "DAMAGED" not in caplog.text
    assert untouched(saved)
    assert [one.step for one in in_all(lambda processes: read_latest(saved, processes=processes))] == [2] * COUNT


def test_a_checkpoint_retired_in_the_store_is_passed_over_by_all_and_is_not_damaged(
    saved: Path, failing: Callable[[Exception], None], caplog: pytest.LogCaptureFixture
) -> None:
    failing(ObjectMissingError("shelf: there is no arrays-0.pack."))
    found = in_all(lambda processes: read_latest(saved, set_aside=True, processes=processes))
    assert [one.step for one in found] == [1] * COUNT
    assert "DAMAGED" not in caplog.text
    assert untouched(saved)


def test_a_pack_that_is_cut_off_in_the_store_is_damage(saved: Path, failing: Callable[[Exception], None]) -> None:
    failing(ShortReadError("shelf: arrays-0.pack ends before byte 70."))
    found = in_all(lambda processes: read_latest(saved, set_aside=True, processes=processes))
    assert [one.step for one in found] == [1] * COUNT
    assert not untouched(saved)


def test_training_does_not_start_from_scratch_where_the_only_checkpoint_was_retired(
    saved: Path, failing: Callable[[Exception], None]
) -> None:
    shutil.rmtree(saved / "checkpoints" / "1")
    failing(ObjectMissingError("shelf: there is no arrays-0.pack."))
    devices: Any = SimpleNamespace(processes=ALONE)
    with pytest.raises(CheckpointNotFoundError, match=r"Checkpoint 2 of .* was deleted while being read"):
        find_start(devices, DeviceState(), str(saved), Plugins(autoload=False))
