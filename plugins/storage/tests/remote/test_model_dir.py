"""Tests of a model_dir in an object store: it is trained, resumed, evaluated and served as on disk."""

import json
import shutil
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._continuous_eval import evaluate_continuously
from estimator_core.errors import ArgumentError, CheckpointNotFoundError, SupersededError
from estimator_core.journal import Retired, read_lineage, take_over
from estimator_core.plugins import using_plugins
from estimator_core.storage import StorageDeniedError, StorageGoneError
from estimator_storage.at_urls import WorkingCopy
from plugins.storage.tests.remote import shelves
from plugins.storage.tests.remote.linear import batches, held_out, model_fn
from plugins.storage.tests.remote.shelves import Shelf


def estimator(location, plugins, **config):
    config = {"tf_random_seed": 1, "save_checkpoints_steps": 5, **config}
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(location), **config), plugins=plugins)


def weights(estimator):
    return estimator.get_variable_value("weights")


def wait_for_the_save_of_step_5(url):
    """Waits for the save. The run reaches it, because it has received five batches."""
    while 5 not in read_lineage(Shelf(url)).saved:
        time.sleep(0.01)


def test_a_run_goes_on_where_another_process_ended_and_comes_to_the_same_as_on_disk(url, plugins, forget, tmp_path):
    on_disk = estimator(tmp_path / "disk", plugins)
    on_disk.train(batches, max_steps=10)
    on_disk.train(batches, max_steps=20)
    estimator(url, plugins).train(batches, max_steps=10)
    forget()
    second = estimator(url, plugins)
    second.train(batches, max_steps=20)
    np.testing.assert_array_equal(weights(second), weights(on_disk))
    forget()
    third = estimator(url, plugins)
    np.testing.assert_array_equal(weights(third), weights(on_disk))
    assert third.evaluate(held_out) == on_disk.evaluate(held_out)
    np.testing.assert_array_equal(list(third.predict(held_out)), list(on_disk.predict(held_out)))
    lineage = read_lineage(Shelf(url), whole=True)
    assert [took.step for took in lineage.starts] == [0, 10]
    assert sorted(lineage.saved) == [0, 5, 10, 15, 20][-5:]


def copied(store: Path, target: Path) -> bool:
    """Copies a store. Returns False if a file was deleted during the copy."""
    shutil.rmtree(target, ignore_errors=True)
    try:
        shutil.copytree(store, target)
    except shutil.Error:
        return False
    return True


def test_a_run_that_was_killed_after_its_last_save_is_ended_without_a_step(url, plugins, forget, tmp_path):
    killed = f"{shelves.PREFIX}{tmp_path / 'killed'}"
    noted = []

    class Notes(ec.Hook):
        def next_step(self, step):
            return step + 1

        def after_step(self, run, step, out):
            noted.append(step)
            if step == 7:
                run.request_stop("the rule says so")

        def end(self, run):
            noted.append((run.stop_reason, run.step))
            while 7 not in read_lineage(Shelf(url)).saved:
                time.sleep(0.01)
            while not copied(Path(url.removeprefix(shelves.PREFIX)), tmp_path / f"killed{len(noted)}"):
                time.sleep(0.01)

    estimator(url, plugins).train(batches, max_steps=10, hooks=[Notes()])
    (tmp_path / "killed8").rename(tmp_path / "killed")
    assert read_lineage(Shelf(killed)).ended is None
    for expected in ([("the rule says so", 7)], [8, 9, 10, ("reached step 10", 10)]):  # then another call begins
        forget()
        noted.clear()
        estimator(killed, plugins).train(batches, max_steps=10, hooks=[Notes()])
        assert noted == expected
        ended = read_lineage(Shelf(killed)).ended
        assert (ended.reason, ended.step) == expected[-1]


def test_only_kept_checkpoints_stay_in_the_store_those_of_earlier_processes_included(url, plugins, forget):
    for last in (10, 20, 40):
        estimator(url, plugins, keep_checkpoint_max=2).train(batches, max_steps=last)
        forget()
    storage = Shelf(url)
    lineage = read_lineage(storage)
    assert sorted(lineage.saved) == [35, 40]
    places = {"/".join(entry.key.split("/")[:3]) for entry in storage.list("data")}
    assert places == {one.place for one in lineage.saved.values()}


def test_a_run_that_another_one_supersedes_publishes_nothing_more_and_names_it(url, plugins, forget):
    def with_a_rival():
        for number, batch in enumerate(batches()):
            if number == 7:
                wait_for_the_save_of_step_5(url)
                take_over(Shelf(url), "host-b, process 2", lambda lineage: 5)
            yield batch

    with pytest.raises(SupersededError, match="host-b, process 2"):
        estimator(url, plugins).train(with_a_rival, max_steps=40)
    lineage = read_lineage(Shelf(url), whole=True)
    assert sorted(lineage.saved) == [0, 5]
    assert lineage.writer == "host-b, process 2"


def test_event_files_and_results_are_in_the_store_after_each_call(url, plugins, forget):
    run = estimator(url, plugins, save_summary_steps=5)
    run.train(batches, max_steps=10)
    run.evaluate(held_out, name="held_out")
    keys = {entry.key: entry.size for entry in Shelf(url).list("")}
    assert "run.json" in keys
    assert any(key.startswith("events.out.tfevents") for key in keys)
    assert any(key.startswith("eval_held_out/events.out.tfevents") for key in keys)
    assert "eval_held_out/metrics.jsonl" in keys
    for segment in read_lineage(Shelf(url)).segments:
        assert keys[f"{segment.directory}/{segment.name}".lstrip("/")] == segment.size


def test_points_that_a_killed_run_wrote_after_its_last_record_are_cut_off(url, plugins, forget):
    estimator(url, plugins, save_summary_steps=5).train(batches, max_steps=10)
    storage = Shelf(url)
    (segment, *_) = read_lineage(storage).segments
    storage.put(segment.name, storage.get(segment.name) + b"half a point")
    storage.put("events.out.tfevents.unrecorded", b"points")
    forget()
    estimator(url, plugins, save_summary_steps=5).train(batches, max_steps=20)
    assert len(storage.get(segment.name)) == segment.size
    assert "events.out.tfevents.unrecorded" not in {entry.key for entry in storage.list("")}


def test_a_store_that_is_emptied_under_a_run_ends_it_and_stays_empty(url, plugins, forget):
    storage = Shelf(url)

    def emptied():
        for number, batch in enumerate(batches()):
            if number == 7:
                wait_for_the_save_of_step_5(url)
                storage.delete([entry.key for entry in storage.list("")])
            yield batch

    with pytest.raises(StorageGoneError, match="was removed or moved"):
        estimator(url, plugins).train(emptied, max_steps=40)
    assert not any(entry.key.startswith("journal/") for entry in storage.list(""))


def test_two_estimators_of_one_url_share_the_copy(url, plugins, forget):
    estimator(url, plugins).train(batches, max_steps=5)
    assert estimator(url, plugins).evaluate(held_out)["global_step"] == 5


def test_an_unknown_scheme_is_refused_before_anything_is_written(plugins, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="no installed package provides storage for lost://"):
        estimator("lost://bucket/run", plugins)
    assert list(Path(tmp_path).iterdir()) == []


def test_an_export_goes_to_a_url_and_is_read_from_it(url, plugins, forget):
    run = estimator(url, plugins)
    run.train(batches, max_steps=5)
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3), "float32")})
    paths = [run.export_saved_model(f"{url}-exports", receiver, format="arrays") for _ in range(2)]
    assert paths[0] != paths[1]
    assert all(path.startswith(f"{url}-exports/") for path in paths)
    x = np.ones((2, 3), np.float32)
    (found,) = ec.export.load(paths[1], plugins=plugins).signatures["serving_default"](x=x).values()
    np.testing.assert_allclose(found, x @ weights(run), rtol=1e-6)


def test_checkpoints_at_a_url_are_read_by_url(url, plugins, forget):
    run = estimator(url, plugins)
    run.train(batches, max_steps=20)
    with using_plugins(plugins):
        newest = ec.load_variables(url)
        tenth = ec.load_variables(f"{url}/checkpoints/10")
        with pytest.raises(CheckpointNotFoundError, match="names the steps 0, 5, 10, 15, 20"):
            ec.load_variables(f"{url}/checkpoints/11")
    np.testing.assert_array_equal(newest["weights"], weights(run))
    assert not np.array_equal(tenth["weights"], newest["weights"])
    at_ten = run.evaluate(held_out, checkpoint_path=run.model_dir + "/checkpoints/10")
    assert at_ten["global_step"] == 10


def test_the_copy_follows_what_another_process_trains(url, plugins, forget):
    first = estimator(url, plugins)
    first.train(batches, max_steps=10)
    forget()
    estimator(url, plugins).train(batches, max_steps=20)
    assert first.evaluate(held_out)["global_step"] == 20
    first.train(batches, max_steps=30)
    assert sorted(read_lineage(Shelf(url), whole=True).saved)[-1] == 30


def test_event_files_of_an_earlier_process_stay(url, plugins, forget):
    for last in (10, 20):
        estimator(url, plugins, save_summary_steps=5).train(batches, max_steps=last)
        forget()
    sizes = {entry.key: entry.size for entry in Shelf(url).list("") if "tfevents" in entry.key}
    assert len(sizes) == 2
    assert sizes == {segment.name: segment.size for segment in read_lineage(Shelf(url)).segments}


class RetiresWhileItComes(Shelf):
    """Makes another run retire the newest checkpoint after its files arrived and before its packs are leased."""

    def put(self, key, data):
        newest = read_lineage(Shelf(self.url)).newest
        if key.startswith(f"leases/{newest.place}/"):
            self.leased = getattr(self, "leased", 0) + 1
            if self.leased == 2:
                rival = take_over(Shelf(self.url), "host-b, process 2", lambda lineage: newest.step)
                rival.publish(Retired(place=newest.place))
        super().put(key, data)


def test_a_checkpoint_that_is_retired_before_its_packs_are_leased_is_not_taken(url, plugins, forget):
    estimator(url, plugins).train(batches, max_steps=10)
    copy = WorkingCopy(RetiresWhileItComes(url))
    copy.refresh(lambda: SimpleNamespace(count=2))
    assert sorted(read_lineage(Shelf(url)).saved) == [0, 5]
    assert [path.name for path in (copy.path / "checkpoints").iterdir()] == ["5"]


class RemovesEventFiles(ec.Hook):
    """Removes the event files between two checkpoints, as a cleanup job does."""

    def after_step(self, run, step, out):
        if step == 7:
            for path in Path(run.model_dir).glob("events.*"):
                path.unlink()


def test_an_event_file_that_is_removed_from_the_copy_ends_no_run(url, plugins):
    config = {"save_summary_steps": 1}
    estimator(url, plugins, **config).train(batches, max_steps=20, hooks=[RemovesEventFiles()])
    assert max(read_lineage(Shelf(url)).saved) == 20


def by_an_evaluator(run, spec):
    evaluate_continuously(run, [spec], max_steps=5, sleep=lambda seconds: None)


def started_again(run, spec):
    ec.train_and_evaluate(run, ec.TrainSpec(batches, max_steps=5), spec)


def in_store(url):
    """Returns the sizes of the evaluation's event files: the bytes in the store, and the bytes that count."""
    storage = Shelf(url)
    lineage = read_lineage(storage, whole=True)
    counted = {f"{told.directory}/{told.name}": told.size for told in lineage.segments}
    there = {entry.key: entry.size for entry in storage.list("eval") if "tfevents" in entry.key}
    return there, {key: size for key, size in counted.items() if key.startswith("eval/")}


@pytest.mark.parametrize("evaluated", [by_an_evaluator, started_again])
def test_what_is_evaluated_and_exported_after_the_end_is_in_the_store(url, plugins, forget, evaluated):
    estimator(url, plugins).train(batches, max_steps=5)
    forget()
    receiver = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3), "float32")})
    final = FinalArrays(receiver)
    spec = ec.EvalSpec(held_out, exporters=[final], start_delay_secs=0, throttle_secs=0)
    evaluated(estimator(url, plugins), spec)
    there, counted = in_store(url)
    assert there == counted != {}
    lineage = read_lineage(Shelf(url))
    assert set(lineage.evaluations) == {("", 5)}
    assert [place.split("/")[1] for place in lineage.exports] == ["final"]


class FinalArrays:
    """An exporter of the last state."""

    name = "final"

    def __init__(self, receiver):
        self._receiver = receiver

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        return estimator.export_saved_model(export_path, self._receiver, format="arrays")


def test_evaluations_killed_after_the_end_leave_nothing_in_the_store(url, plugins, forget, monkeypatch):
    """The process is killed twice in a row: before the record, or before the counted files are uploaded."""
    estimator(url, plugins).train(batches, max_steps=5)
    for module, name in (("working_copy", "observe"), ("side_file_sync", "upload_file")):
        forget()
        with monkeypatch.context() as patch:
            patch.setattr(import_module(f"estimator_storage.at_urls.{module}"), name, killed)
            with pytest.raises(Killed):
                estimator(url, plugins).evaluate(held_out)
    there, _ = in_store(url)
    assert there == {}
    forget()
    estimator(url, plugins).evaluate(held_out)
    there, counted = in_store(url)
    assert len(there) == 1
    assert there.items() <= counted.items()
    assert [step for _, step in read_lineage(Shelf(url)).evaluations] == [5]


class Killed(BaseException):
    """Simulates a kill: no handler runs after it."""


def killed(*args, **kwargs):
    raise Killed


def test_two_evaluations_at_once_keep_their_points_and_a_run_that_takes_over_leaves_them(
    url, plugins, forget, monkeypatch
):
    working_copy = import_module("estimator_storage.at_urls.working_copy")
    estimator(url, plugins).train(batches, max_steps=5)
    forget()
    real = working_copy.observe
    stopped = []

    def meanwhile(*args):
        if not stopped:
            stopped.append(True)
            forget()
            estimator(url, plugins).evaluate(held_out)
            take_over(Shelf(url), "host-b, process 2", lambda lineage: 5)
        number = real(*args)
        forget()
        estimator(url, plugins).train(batches, max_steps=10) if len(stopped) == 1 else None
        stopped.append(True)
        return number

    monkeypatch.setattr(working_copy, "observe", meanwhile)
    estimator(url, plugins).evaluate(held_out)
    there, counted = in_store(url)
    assert len(there) == 2
    assert there == counted


def test_an_evaluator_sees_that_training_has_ended_elsewhere(url, plugins, forget):
    estimator(url, plugins).train(batches, max_steps=5)
    forget()
    waiting = estimator(url, plugins)
    waiting.latest_checkpoint()
    forget()
    estimator(url, plugins).train(batches, max_steps=10, hooks=[StopsAt7()])
    assert waiting.latest_checkpoint().endswith("/7")
    assert json.loads(Path(waiting.model_dir, "run.json").read_text())["ended"]["step"] == 7


class StopsAt7(ec.Hook):
    def next_step(self, step):
        return 7 if step < 7 else None

    def after_step(self, run, step, out):
        run.request_stop("the rule says so")


@pytest.mark.parametrize("inside", ["checkpoints", "checkpoints/5"])
def test_a_directory_of_checkpoints_is_a_model_dir_if_this_user_may_not_read_around_it(
    url, plugins, forget, inside, monkeypatch
):
    read = Shelf.get

    def denied(self, key):
        if self.url == url:
            raise StorageDeniedError(f"{self.url}: this user may not access {key}.")
        return read(self, key)

    monkeypatch.setattr(Shelf, "get", denied)
    run = estimator(f"{url}/{inside}", plugins)
    run.train(batches, max_steps=5)
    assert run.evaluate(held_out)["global_step"] == 5


def test_a_checkpoint_is_no_model_dir_for_plugins_of_an_estimator_either(url, plugins, forget):
    estimator(url, plugins).train(batches, max_steps=5)
    with pytest.raises(ArgumentError, match=f"is inside the run {url}, "):
        estimator(f"{url}/checkpoints/5", plugins)
