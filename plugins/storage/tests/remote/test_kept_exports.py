"""Tests of exports of a model_dir in an object store: each is made once, however often the exporter is killed."""

import hashlib
import itertools
import json
from importlib import import_module
from pathlib import Path

import pytest

import estimator_core as ec
from estimator_core.export import collect_garbage, latest_export
from estimator_core.journal import read_lineage
from plugins.storage.tests.remote.linear import batches, held_out, model_fn
from plugins.storage.tests.remote.shelves import Shelf

KEPT = "estimator_storage.at_urls.kept_exports"
NAMES = itertools.count(1_700_000_000)  # a killed process cannot pass its clock to the next process


class OfCheckpoint:
    """An exporter of the weights of a checkpoint. It exports each checkpoint once."""

    name = "latest"

    def __init__(self, keep=None):
        self._keep = keep

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        source = hashlib.sha256(Path(checkpoint_path, "manifest.json").read_bytes()).hexdigest()
        newest = latest_export(export_path)
        if newest is not None and json.loads(Path(newest, "manifest.json").read_bytes())["of"] == source:
            return newest
        draft, target = Path(export_path, "temp-1"), Path(export_path, str(next(NAMES)))
        draft.mkdir(parents=True, exist_ok=True)
        (draft / "weights").write_text(str(estimator.get_variable_value("weights").tolist()))
        (draft / "manifest.json").write_text(json.dumps({"of": source, "global_step": eval_result["global_step"]}))
        draft.rename(target)
        collect_garbage(export_path, self._keep)
        return str(target)


def run(url, plugins, last=5, keep=None):
    """Trains up to a step, and exports each checkpoint. Returns the path of the newest export."""
    config = ec.RunConfig(model_dir=url, tf_random_seed=1, save_checkpoints_steps=5)
    estimator = ec.Estimator(model_fn, config=config, plugins=plugins)
    spec = ec.EvalSpec(held_out, exporters=[OfCheckpoint(keep)], start_delay_secs=0, throttle_secs=0)
    _, (path,) = ec.train_and_evaluate(estimator, ec.TrainSpec(batches, max_steps=last), spec)
    return path


def complete_in(url):
    """Returns the steps of the exports that a reader of the store finds, by place."""
    keys = [entry.key for entry in Shelf(url).list("export") if entry.key.endswith("/manifest.json")]
    return {key.rpartition("/")[0]: json.loads(Shelf(url).get(key))["global_step"] for key in keys}


class Killed(BaseException):
    """Simulates a kill: no handler runs after it."""


def killed(*args, **kwargs):
    raise Killed


def half_uploaded(storage, prefix, directory, *, last):
    """Uploads only some of the files, without the file that makes them count."""
    assert last == "manifest.json"
    storage.put(f"{prefix}/weights", (directory / "weights").read_bytes())
    raise Killed


MOMENTS = {
    "before the upload": (KEPT, "upload_directory", killed),
    "within the upload": (KEPT, "upload_directory", half_uploaded),
    "before the record": ("estimator_storage.at_urls.working_copy", "observe", killed),
}


PAIRS = (
    ("within the upload", "before the upload"),
    ("within the upload", "before the record"),
    ("before the record", "before the record"),
)


@pytest.mark.parametrize("moments", PAIRS, ids="; ".join)
def test_an_export_is_made_once_however_often_it_is_killed(url, plugins, forget, monkeypatch, moments):
    """The process is killed during the export after the end, and so is the next process."""
    config = ec.RunConfig(model_dir=url, tf_random_seed=1, save_checkpoints_steps=5)
    ec.Estimator(model_fn, config=config, plugins=plugins).train(batches, max_steps=5)
    for moment in moments:
        module, name, function = MOMENTS[moment]
        forget()
        with monkeypatch.context() as patch:
            patch.setattr(import_module(module), name, function)
            with pytest.raises(Killed):
                run(url, plugins)
    forget()
    path = Path(run(url, plugins))
    assert set(complete_in(url).values()) == {5}
    (place,) = complete_in(url)
    recorded = read_lineage(Shelf(url), whole=True).exports[place]
    assert (recorded.step, recorded.digest) == (5, hashlib.sha256((path / "manifest.json").read_bytes()).hexdigest())
    assert sorted(file.name for file in path.iterdir()) == ["manifest.json", "weights"]


def test_an_export_of_a_run_that_is_killed_before_its_record_is_recorded_by_the_next(url, plugins, forget, monkeypatch):
    beside = import_module("estimator_storage.at_urls.side_file_sync")
    upload = beside.upload_file

    def killed_once_there_is_an_export(storage, *args, **kwargs):
        if complete_in(url):
            raise Killed
        upload(storage, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(beside, "upload_file", killed_once_there_is_an_export)
        with pytest.raises(Killed):
            run(url, plugins, 10)
    (first,) = complete_in(url)
    assert read_lineage(Shelf(url)).exports == {}
    forget()
    run(url, plugins, 10)
    assert sorted(complete_in(url).values()) == [5, 10]
    recorded = read_lineage(Shelf(url), whole=True).exports
    assert {place: export.step for place, export in recorded.items()} == complete_in(url)
    assert first in recorded


def test_exports_of_earlier_processes_leave_the_store_as_those_of_the_run_do(url, plugins, forget):
    for last in (10, 20):
        run(url, plugins, last, keep=2)
        forget()
    assert sorted(complete_in(url).values()) == [15, 20]
    assert {entry.key.rpartition("/")[0] for entry in Shelf(url).list("export")} == set(complete_in(url))


def test_a_process_finds_the_newest_export_of_an_earlier_one_whole(url, plugins, forget):
    run(url, plugins)
    forget()
    estimator = ec.Estimator(model_fn, url, plugins=plugins)
    found = estimator.latest_export("latest")
    assert sorted(file.name for file in Path(found).iterdir()) == ["manifest.json", "weights"]
    estimator.train(batches, max_steps=10)
    assert set(complete_in(url).values()) == {5}


@pytest.mark.parametrize(("later", "left"), [(80_000, True), (90_000, False)])
def test_what_a_kill_left_of_an_upload_goes_after_a_day(url, plugins, forget, monkeypatch, later, left):
    run(url, plugins)
    part, now = "export/latest/1800000000/weights", Shelf.now
    Shelf(url).put(part, b"half")
    monkeypatch.setattr(Shelf, "now", lambda storage: now(storage) + later)
    forget()
    run(url, plugins, 10)
    assert (part in {entry.key for entry in Shelf(url).list("export")}) is left
    assert sorted(complete_in(url).values()) == [5, 10]
