"""Tests of commands that read a model_dir at a URL: they find differences from its journal, and print URLs."""

import json
import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from estimator_core._cli import audit, checkpoints
from estimator_core.errors import ArgumentError
from estimator_core.journal import read_lineage
from estimator_core.plugins import using_plugins
from plugins.storage.tests.remote import shelves
from plugins.storage.tests.remote.shelves import Shelf
from plugins.storage.tests.remote.test_kept_exports import run


@pytest.fixture(scope="module")
def trained(tmp_path_factory, module_plugins):
    """Makes a shelf with checkpoints, evaluations and exports."""
    directory = tmp_path_factory.mktemp("trained") / "run"
    run(f"{shelves.PREFIX}{directory}", module_plugins, 10)
    return directory


@pytest.fixture
def url(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    return f"{shelves.PREFIX}{tmp_path / 'run'}"


def audited(url, plugins, capsys):
    """Returns the kinds of the command's findings, and its exit status."""
    with using_plugins(plugins):
        status = audit.run(Namespace(model_dir=url, repair=False, json=True))
    told = json.loads(capsys.readouterr().out)
    assert status == bool(told["findings"])
    return told


def test_where_all_is_as_the_journal_says_nothing_is_found(url, plugins, capsys):
    before = {entry.key: entry.modified for entry in Shelf(url).list("")}
    told = audited(url, plugins, capsys)
    assert told["findings"] == []
    assert (told["model_dir"], told["epochs"], told["checkpoints"], told["evaluations"]) == (url, 1, 3, 2)
    assert {entry.key: entry.modified for entry in Shelf(url).list("")} == before


def changed(key):
    def change(storage):
        (found, *_) = [entry.key for entry in storage.list("") if Path(entry.key).match(key)]
        storage.put(found, storage.get(found) + b" ")

    return change


def cut(key):
    def change(storage):
        (found, *_) = [entry.key for entry in storage.list("") if Path(entry.key).match(key)]
        storage.put(found, storage.get(found)[:-5])

    return change


def removed(key):
    return lambda storage: storage.delete([next(one.key for one in storage.list("") if Path(one.key).match(key))])


def added(key):
    return lambda storage: storage.put(key.format(identity=read_lineage(storage).identity), b"{}")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (changed("data/*/*/manifest.json"), "checkpoint"),
        (removed("data/*/*/manifest.json"), "checkpoint"),
        (removed("arrays/*/*"), "checkpoint"),
        (removed("journal/*/0000000001"), "journal"),
        (cut("journal/*/0000000001"), "journal"),
        (changed("eval/events.*"), "event file"),
        (cut("eval/events.*"), "event file"),
        (added("eval/events.out.tfevents.0000000009.e000001"), "event file"),
        (changed("export/latest/*/manifest.json"), "export"),
        (removed("export/latest/*/manifest.json"), "export"),
        (added("export/latest/1800000000/manifest.json"), "export"),
        (added("export/latest/1800000000/weights"), "partial export"),
        (cut("eval/metrics.jsonl"), "results"),
        (added("data/{identity}/e0000000001-0000000005-abcdef/weights"), "leftover"),
    ],
)
def test_what_differs_is_found(url, plugins, capsys, change, kind):
    change(Shelf(url))
    assert {finding["kind"] for finding in audited(url, plugins, capsys)["findings"]} == {kind}


@pytest.mark.parametrize("named", ["", "/checkpoints", "/checkpoints/5"])
def test_checkpoints_are_listed_by_their_urls(url, plugins, capsys, named):
    nothing = {"diff": None, "variables": False, "manifest": False}
    with using_plugins(plugins):
        checkpoints.run(Namespace(directory=url + named, json=True, **nothing))
    paths = [row["path"] for row in json.loads(capsys.readouterr().out)]
    steps = [5] if named.endswith("5") else [0, 5, 10]
    assert paths == [f"{url}/checkpoints/{step}" for step in steps]


def test_a_store_is_not_repaired_by_hand(url, plugins):
    with using_plugins(plugins), pytest.raises(ArgumentError, match="The next run repairs"):
        audit.run(Namespace(model_dir=url, repair=True, json=False))
