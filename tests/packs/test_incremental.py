"""Tests of saves of changed rows: they are restored exactly, whatever was deleted, killed or damaged between them."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cuts import make_chunks_small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_core._checkpoint.newest import read_latest
from estimator_core._packs.dtypes import dtype_named
from estimator_core._packs.fetch import read_boxes
from estimator_core.checkpoint import CheckpointItems, CheckpointStore, read_checkpoint
from estimator_core.errors import CheckpointCorruptError, CheckpointError


@pytest.fixture
def all_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Treats every array as large."""
    make_chunks_small(monkeypatch)
    monkeypatch.setattr("estimator_core._checkpoint.host_copy.LEAST_BYTES", 1)
    monkeypatch.setattr("estimator_core._checkpoint.host_copy._TOGETHER", 64)
    return


def finite(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Draws numbers that may be saved and that exist in every dtype."""
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype_named(dtype))


def items(step: int, **variables: np.ndarray) -> CheckpointItems:
    return CheckpointItems(clock=np.array([step, 0, 0, 0], np.uint32), variables=variables)


def packs_of(model_dir: Path, step: int) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (model_dir / "checkpoints" / str(step)).glob("*.pack")}


@st.composite
def lives(draw: st.DrawFn) -> list[dict[str, np.ndarray]]:
    """Draws the arrays of several saves. From one to the next some rows change, sometimes all rows or the shape."""
    table = finite(draw(st.sampled_from(["float32", "bfloat16", "uint8"])), (draw(st.integers(1, 60)), 3), 1)
    vector, saves = finite("int64", (7,), 2), []
    for seed in range(draw(st.integers(2, 7))):
        change = draw(st.sampled_from(["none", "rows", "rows", "all", "shape", "gone"]))
        table, vector = table.copy(), vector.copy()
        if change == "shape":
            table = finite(table.dtype.name, (draw(st.integers(1, 60)), 3), 10 + seed)
        for row in draw(st.lists(st.integers(0, len(table) - 1), max_size=4)) if change == "rows" else ():
            table[row] = finite(table.dtype.name, (3,), 20 + seed)
            vector[row % 7] += 1
        if change == "all":
            table = finite(table.dtype.name, table.shape, 30 + seed)
        saves.append({"vector": vector} if change == "gone" else {"table": table, "vector": vector})
    return saves


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(saves=lives(), full_every=st.integers(2, 4), keep=st.integers(1, 3), closed=st.integers(0, 6), data=st.data())
@pytest.mark.usefixtures("all_tables")
def test_every_checkpoint_that_is_kept_is_what_was_saved(
    saves: list[dict[str, np.ndarray]], full_every: int, keep: int, closed: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with CheckpointStore(directory, full_every=full_every, keep_max=keep) as store:
            for step, variables in enumerate(saves):
                store.save(step, items(step, **variables)).wait()
                if step == closed:
                    store.close()  # frees the copies: arrays that cannot be compared are saved whole
        kept = range(max(0, len(saves) - keep), len(saves))
        assert [int(Path(path).name) for path in store.all()] == list(kept)
        for step in kept:
            found = read_checkpoint(Path(directory, "checkpoints", str(step))).variables
            assert found.keys() == saves[step].keys()
            assert all(found[name].tobytes() == array.tobytes() for name, array in saves[step].items())
            assert all(found[name].dtype == array.dtype for name, array in saves[step].items())
        newest = read_latest(directory)
        assert newest is not None
        for name, array in saves[-1].items():
            bounds = [sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in array.shape]
            (part,) = read_boxes([(newest.items.variables[name], tuple((a, b) for a, b in bounds))])
            assert part.tobytes() == array[tuple(slice(*bound) for bound in bounds)].tobytes()


@pytest.mark.usefixtures("all_tables")
def test_only_changed_rows_are_written_and_each_nth_save_is_full(tmp_path: Path) -> None:
    table = np.zeros((4000, 8), np.float32)
    with CheckpointStore(tmp_path, full_every=3, keep_max=None) as store:
        for step in range(7):
            table[step] = step
            store.save(step, items(step, table=table)).wait()
    full = packs_of(tmp_path, 0)["arrays-0.pack"]
    assert full > table.nbytes
    for step in range(7):
        packs = packs_of(tmp_path, step)
        assert packs.keys() == ({"arrays-0.pack"} if step % 3 == 0 else {"arrays-0.pack", "base-0.pack"})
        assert (packs["arrays-0.pack"] == full) == (step % 3 == 0)
        assert step % 3 == 0 or packs["arrays-0.pack"] < full / 30


@pytest.mark.usefixtures("all_tables")
@pytest.mark.parametrize("lost", ["arrays-0.pack", "manifest.json"])
def test_after_a_kill_the_newest_whole_one_is_restored_and_the_next_is_full(tmp_path: Path, lost: str) -> None:
    table = np.zeros((100, 8), np.float32)
    with CheckpointStore(tmp_path, full_every=10) as store:
        for step in range(3):
            table[step] = step + 1
            store.save(step, items(step, table=table)).wait()
    half = tmp_path / "checkpoints" / ".writing-2-half"  # as a kill before the rename leaves it
    (tmp_path / "checkpoints" / "2").rename(half)
    (half / lost).unlink()
    with CheckpointStore(tmp_path, full_every=10) as store:
        assert not half.exists()
        found = read_latest(tmp_path)
        assert found is not None
        assert found.step == 1
        assert np.asarray(found.items.variables["table"])[:3, 0].tolist() == [1, 2, 0]
        store.save(2, items(2, table=table)).wait()
    assert packs_of(tmp_path, 2).keys() == {"arrays-0.pack"}
    assert read_checkpoint(tmp_path).variables["table"].tobytes() == table.tobytes()


@pytest.mark.usefixtures("all_tables")
def test_a_save_that_fails_is_followed_by_a_full_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.zeros((100, 8), np.float32)
    with CheckpointStore(tmp_path, full_every=10) as store:
        store.save(0, items(0, table=table)).wait()
        with monkeypatch.context() as patch:
            patch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError(1, "no links here")))
            with pytest.raises(CheckpointError, match="no links here"):
                store.save(1, items(1, table=table)).wait()
        store.save(2, items(2, table=table)).wait()
    assert packs_of(tmp_path, 2).keys() == {"arrays-0.pack"}


@pytest.mark.usefixtures("all_tables")
def test_a_damaged_base_is_found(tmp_path: Path) -> None:
    table = np.zeros((100, 8), np.float32)
    with CheckpointStore(tmp_path, full_every=10) as store:
        for step in range(2):
            table[50] = step
            store.save(step, items(step, table=table)).wait()
    base = tmp_path / "checkpoints" / "1" / "base-0.pack"
    data = bytearray(base.read_bytes())
    data[200] ^= 1
    base.write_bytes(data)
    with pytest.raises(CheckpointCorruptError, match=r"'table' at .* in base-0\.pack differs from what was saved"):
        read_checkpoint(tmp_path / "checkpoints" / "1")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_table_of_ten_million_rows(tmp_path: Path) -> None:
    """Compares bytes and time with a full save if 0.1% of the rows changed."""
    rng = np.random.default_rng(0)
    table = rng.random((10_000_000, 16), np.float32)
    took, written = [], []
    with CheckpointStore(tmp_path, full_every=3, keep_max=None) as store:
        for step in range(5):
            table[rng.choice(len(table), 10_000, replace=False)] += 1
            start = time.perf_counter()
            store.save(step, items(step, table=table)).wait()
            took.append(time.perf_counter() - start)
            written.append(packs_of(tmp_path, step)["arrays-0.pack"])
        start = time.perf_counter()
        assert read_checkpoint(tmp_path).variables["table"].tobytes() == table.tobytes()
        print(f"bytes {written}, seconds {[round(t, 2) for t in took]}, read {time.perf_counter() - start:.2f} s")
    rows_and_numbers = 10_000 * (16 * 4 + 8)
    assert written[0] == written[3] > table.nbytes
    assert written[1] < 1.01 * rows_and_numbers
    assert written[2] < 2.01 * rows_and_numbers
    assert os.stat(tmp_path / "checkpoints" / "0" / "arrays-0.pack").st_nlink == 3
