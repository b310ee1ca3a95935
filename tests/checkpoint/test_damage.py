"""Tests of damaged checkpoints: with any one file torn, altered or lost, reading returns the saved bits or raises a
clear error.
"""

import gc
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_core._checkpoint import CheckpointItems, CheckpointStore, latest_checkpoint
from estimator_core._checkpoint.catalog import all_checkpoints
from estimator_core._checkpoint.newest import read_latest
from estimator_core._checkpoint.read import read_checkpoint
from estimator_core.errors import CheckpointCorruptError, CheckpointNotFoundError


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


DAMAGES = {
    "halved": truncate,
    "emptied": lambda path: path.write_bytes(b""),
    "first byte": lambda path: flip(path, 0),
    "middle byte": lambda path: flip(path, path.stat().st_size // 2),
    "last byte": lambda path: flip(path, -1),
    "lost": Path.unlink,
}


def files_of(checkpoint):
    return sorted(path for path in checkpoint.rglob("*") if path.is_file())


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_damaged_file_gives_garbage(saved, small_items, assert_same, caplog, damage):
    newest = saved / "checkpoints" / "2"
    copy = saved / "copy"
    shutil.copytree(newest, copy)
    files = [file for file in files_of(newest) if file.stat().st_size]
    assert len(files) >= 9
    for file in files:
        DAMAGES[damage](file)
        with pytest.raises((CheckpointCorruptError, CheckpointNotFoundError), match=r"damaged|no checkpoint"):
            read_checkpoint(newest)
        caplog.clear()
        restored = read_latest(saved)
        assert restored.step == 1
        assert_same(restored.items, small_items(1))
        assert "DAMAGED CHECKPOINT" in caplog.text
        assert f"Continuing from {saved / 'checkpoints' / '1'}" in caplog.text
        shutil.rmtree(newest)
        shutil.copytree(copy, newest)


def test_an_altered_value_of_a_large_array_is_noticed(tmp_path, caplog):
    values = np.arange(500_000, dtype=np.float32)
    with CheckpointStore(tmp_path) as store:
        for step in (1, 2):
            store.save(
                step, CheckpointItems(clock=np.array([step, 0, 0, 0], np.uint32), variables={"big": values + step})
            )
    (data,) = [file for file in files_of(tmp_path / "checkpoints" / "2") if file.stat().st_size >= values.nbytes]
    flip(data, data.read_bytes().index((values + 2)[1000:1100].tobytes()))
    with pytest.raises(CheckpointCorruptError, match="variables 'big' differs from what was saved"):
        read_checkpoint(tmp_path)
    np.testing.assert_array_equal(read_latest(tmp_path).items.variables["big"], values + 1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of futures orbax abandoned
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 10**6), position=st.integers(0, 10**6), mask=st.integers(1, 255))
def test_no_altered_byte_gives_garbage(saved, small_items, assert_same, monkeypatch, which, position, mask):
    # Treats all array files as large: only their sizes are checked before orbax reads them, and the arrays afterwards.
    monkeypatch.setattr("estimator_core._checkpoint.read.check_files", lambda *_: None)
    newest = saved / "checkpoints" / "2"
    files = [file for file in files_of(newest / "arrays") if file.stat().st_size]
    file = files[which % len(files)]
    data = file.read_bytes()
    altered = bytearray(data)
    altered[position % len(data)] ^= mask
    file.write_bytes(altered)
    try:
        assert_same(read_checkpoint(newest), small_items(2))
    except CheckpointCorruptError:
        gc.collect()  # futures that orbax abandoned: their warnings during an `ast.parse` break Python 3.11
    finally:
        file.write_bytes(data)


def test_the_owner_sets_damaged_ones_aside(saved, caplog):
    shutil.rmtree(saved / "checkpoints" / "2" / "arrays")
    assert read_latest(saved).step == 1
    assert latest_checkpoint(saved).endswith("2")  # a reader does not change it
    restored = read_latest(saved, set_aside=True)
    assert restored.path == str(saved / "checkpoints" / "1") == latest_checkpoint(saved)
    assert (saved / "checkpoints" / "damaged-2" / "manifest.json").exists()
    assert "damaged-2" in caplog.text


def test_nothing_starts_from_scratch_where_all_are_damaged(saved):
    for path in all_checkpoints(saved):
        (Path(path) / "manifest.json").unlink()
    assert latest_checkpoint(saved) is None
    with pytest.raises(CheckpointCorruptError, match=r"All checkpoints of .* damaged: .*2, .*1\. Restore one"):
        read_latest(saved, set_aside=True)
    assert sorted(path.name for path in (saved / "checkpoints").iterdir()) == ["1", "2"]


def test_a_checkpoint_of_a_newer_format_is_the_latest_and_says_so(saved):
    manifest = saved / "checkpoints" / "2" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 99'))
    assert latest_checkpoint(saved).endswith("2")
    with pytest.raises(Exception, match="has format 99") as caught:
        read_latest(saved)
    assert not isinstance(caught.value, CheckpointCorruptError)


def test_large_json_is_checked_as_a_whole(tmp_path):
    with CheckpointStore(tmp_path) as store:
        position = {"seen": ["a" * 1000] * 1500}
        store.save(1, CheckpointItems(clock=np.array([1, 0, 0, 0], np.uint32), variables={}, input=position))
    assert read_checkpoint(tmp_path).input == position
    flip(tmp_path / "checkpoints" / "1" / "input.json", 1_000_000)
    with pytest.raises(CheckpointCorruptError, match=r"input\.json differs from what was saved"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(("old", "new"), [('"base": 2', '"base": 3'), ('"heads": "1.0"', '"heads": "1.1"')])
def test_a_fact_that_was_altered_in_the_manifest_is_noticed(saved, old, new):
    """Only the manifest itself holds this fact."""
    manifest = saved / "checkpoints" / "2" / "manifest.json"
    text = manifest.read_text()
    assert text.count(old) == 1
    manifest.write_text(text.replace(old, new))
    with pytest.raises(CheckpointCorruptError, match="its seal is"):
        read_checkpoint(saved / "checkpoints" / "2")
    assert read_latest(saved).step == 1
