"""Tests of the digests of long result files, which are parsed once."""

import json
import os

import numpy as np
import pytest

from estimator_core.summaries import read_eval_metrics
from estimator_runs.records import digest_cache
from estimator_runs.records.digest import digests, file_digests
from estimator_runs.records.digest_cache import KEPT, known_digests


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file with the results of 3,000 steps, one hour old. Every length counts as long."""
    monkeypatch.setattr(digest_cache, "LEAST_BYTES", 1)
    path = tmp_path / "metrics.jsonl"
    write(path, [5 - step / 1e4 for step in range(3_000)])
    return path


def write(path, losses, *, age=3_600):
    lines = [
        json.dumps({"global_step": step, "metrics": {"loss": loss, "seen": step, "name": "a"}})
        for step, loss in enumerate(losses)
    ]
    path.write_text("\n".join([*lines, ""]))
    stamp = path.stat().st_mtime_ns - age * 10**9
    os.utime(path, ns=(stamp, stamp))


def parsed(monkeypatch):
    """Returns a list that collects the files parsed from now on."""
    seen = []

    def see(path):
        seen.append(path)
        return file_digests(path)

    monkeypatch.setattr(digest_cache, "file_digests", see)
    return seen


def test_a_long_file_is_parsed_once(path, monkeypatch):
    seen = parsed(monkeypatch)
    first, second = known_digests(path), known_digests(path)
    assert seen == [path]
    assert first == second == digests(read_eval_metrics(path.parent).items())
    assert set(first) == {"loss", "seen"}


def test_a_list_of_runs_does_not_wait_for_the_disk(path, monkeypatch):
    """A list of a thousand runs would wait a thousand times. A digest that a power failure tears is computed again."""
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    known_digests(path)
    assert path.with_name(KEPT).exists()
    assert flushed == []


def test_another_content_is_parsed_again(path, monkeypatch):
    write(path, [5.0] * 3_000)
    known_digests(path)
    size = path.stat().st_size
    write(path, [6.0] * 3_000, age=7_200)
    assert (path.stat().st_size, known_digests(path)["loss"].most) == (size, 6.0)
    seen = parsed(monkeypatch)
    with path.open("a") as file:
        file.write('{"global_step": 3000, "metrics": {"loss": 9.0}}\n')
    assert known_digests(path)["loss"].last == 9.0
    assert seen == [path]


def test_a_file_that_may_still_change_within_its_time_stamp_is_not_kept(path):
    write(path, [1.0, 2.0], age=0)
    known_digests(path)
    assert not path.with_name(KEPT).exists()


@pytest.mark.parametrize("damage", ["{", "[]", '{"of": 1}', '{"of": OF, "metrics": {"loss": {"least": 1}}}'])
def test_damaged_digests_are_made_again(path, damage):
    whole = known_digests(path)
    said = json.loads(path.with_name(KEPT).read_text())
    path.with_name(KEPT).write_text(damage.replace("OF", json.dumps(said["of"])))
    assert known_digests(path) == whole
    assert json.loads(path.with_name(KEPT).read_text()) == said


def test_where_nothing_can_be_written_nothing_is_kept(path):
    path.with_name(KEPT).mkdir()
    assert known_digests(path) == known_digests(path) == file_digests(path)
    assert [one.name for one in path.parent.iterdir() if one.name.startswith(".")] == []


def test_values_that_are_no_numbers_and_numbers_that_are_none(path):
    write(path, [float("nan"), 2, float("inf"), True, "word", None, [1.0], 1.5])
    found = known_digests(path)["loss"]
    assert (found.least, found.most, found.last) == (1.0, float("inf"), 1.5)
    assert list(found.steps) == [0, 1, 2, 3, 7]
    again = known_digests(path)["loss"]
    assert np.array_equal(found.values, again.values, equal_nan=True)
