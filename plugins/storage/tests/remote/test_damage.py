"""Tests of damaged checkpoints in an object store: the previous one is used, as on disk, and nothing else is lost."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import CheckpointCorruptError
from estimator_core.journal import read_lineage
from estimator_core.plugins import Plugins, using_plugins
from estimator_core.storage import StorageDeniedError
from estimator_core.testing import array_format
from plugins.storage.tests.remote import shelves
from plugins.storage.tests.remote.linear import batches, held_out
from plugins.storage.tests.remote.shelves import Shelf
from plugins.storage.tests.remote.test_model_dir import estimator, weights


def folder_of(url, step):
    return Path(url.removeprefix(shelves.PREFIX), read_lineage(Shelf(url)).saved[step].place)


def largest(folder):
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def alter(path):
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


DAMAGES = {
    "an altered manifest": lambda folder: alter(folder / "manifest.json"),
    "an altered array": lambda folder: alter(largest(folder)),
    "a torn array": lambda folder: largest(folder).write_bytes(largest(folder).read_bytes()[:-5]),
    "a lost array": lambda folder: largest(folder).unlink(),
    "a lost manifest": lambda folder: (folder / "manifest.json").unlink(),
    "nothing is left": shutil.rmtree,
}


@pytest.fixture(scope="module")
def at_twenty(tmp_path_factory: pytest.TempPathFactory, module_plugins) -> np.ndarray:
    """The weights of an undisturbed run."""
    run = estimator(tmp_path_factory.mktemp("alone"), module_plugins)
    run.train(batches, max_steps=20)
    return weights(run)


@pytest.mark.parametrize("steps", [(15,), (10, 15)], ids=["one", "two"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_checkpoint_before_is_used(url, plugins, forget, caplog, at_twenty, damage, steps):
    estimator(url, plugins).train(batches, max_steps=15)
    for step in steps:
        DAMAGES[damage](folder_of(url, step))
    forget()
    before = min(steps) - 5
    assert estimator(url, plugins).evaluate(held_out)["global_step"] == before
    assert f"DAMAGED CHECKPOINT: {url}: the checkpoint of step 15 " in caplog.text
    with using_plugins(plugins):
        ec.load_variables(url)
        with pytest.raises(CheckpointCorruptError, match=r"of step 15 .* differs from what was recorded"):
            ec.load_variables(f"{url}/checkpoints/15")
    assert max(read_lineage(Shelf(url)).saved) == 15, "who only reads changes nothing"
    forget()
    run = estimator(url, plugins)
    run.train(batches, max_steps=20)
    np.testing.assert_array_equal(weights(run), at_twenty)
    forget()
    caplog.clear()
    assert estimator(url, plugins).evaluate(held_out)["global_step"] == 20
    assert "DAMAGED" not in caplog.text
    assert sorted(read_lineage(Shelf(url)).saved) == [0, 5, 10, 15, 20]


def test_a_run_whose_last_checkpoint_is_damaged_makes_its_steps_again(url, plugins, forget, at_twenty):
    estimator(url, plugins).train(batches, max_steps=20)
    DAMAGES["an altered array"](folder_of(url, 20))
    forget()
    run = estimator(url, plugins)
    run.train(batches, max_steps=20)
    np.testing.assert_array_equal(weights(run), at_twenty)


def test_nothing_starts_from_scratch_where_all_are_damaged(url, plugins, forget):
    estimator(url, plugins).train(batches, max_steps=5)
    for step in (0, 5):
        DAMAGES["an altered array"](folder_of(url, step))
    before = read_lineage(Shelf(url)).number
    for verb in (lambda run: run.train(batches, max_steps=10), lambda run: run.evaluate(held_out)):
        forget()
        with pytest.raises(
            CheckpointCorruptError, match=r"All checkpoints of shelf://.* are damaged: 0, 5\. Restore one"
        ):
            verb(estimator(url, plugins))
    assert read_lineage(Shelf(url)).number == before


class Flips(Shelf):
    """Flips a bit the first time that a large object is read."""

    flipped: list[str] = []  # noqa: RUF012 - of the one test

    def get_ranges(self, key, ranges):
        found = [bytes(part) for part in super().get_ranges(key, ranges)]
        if key.startswith("data/") and not self.flipped and len(found[0]) > 200 and "manifest" not in key:
            self.flipped.append(key)
            found[0] = bytes([found[0][0] ^ 1]) + found[0][1:]
        return found


def test_a_fault_of_the_way_costs_no_checkpoint(url, plugins, forget, monkeypatch, caplog):
    estimator(url, plugins).train(batches, max_steps=15)
    forget()
    monkeypatch.setattr(Flips, "flipped", [])
    monkeypatch.setattr(shelves, "Shelf", Flips)
    assert estimator(url, plugins).evaluate(held_out)["global_step"] == 15
    assert Flips.flipped
    assert "It is read again." in caplog.text


class ReadOnly(Shelf):
    """A storage in which no lease can be written."""

    refused: list[str] = []  # noqa: RUF012 - of the one test

    def put(self, key, data):
        self.refused.append(key)
        raise StorageDeniedError(f"{key} may not be written")

    put_new = put


def test_who_may_only_read_is_not_kept_waiting(url, forget, monkeypatch):
    plugins = Plugins(only=["estimator-storage"], extra=[shelves, array_format])
    run = estimator(url, plugins)
    run.train(batches, max_steps=15)
    DAMAGES["nothing is left"](folder_of(url, 15))
    monkeypatch.setattr(shelves, "Shelf", ReadOnly)
    monkeypatch.setattr(ReadOnly, "refused", [])
    with using_plugins(plugins):
        newest, tenth = ec.load_variables(url), ec.load_variables(f"{url}/checkpoints/10")
    np.testing.assert_array_equal(newest["weights"], tenth["weights"])
    assert ReadOnly.refused
