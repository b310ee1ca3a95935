"""Tests of when exporters export, what they keep, and what they remember."""

import errno
import hashlib
import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError, ExportError
from estimator_core.export import Feature, Rename, ServingInputReceiver, build_raw_serving_input_receiver_fn
from estimator_core.inputs import save_transforms
from estimator_core.testing import ExporterSuite
from estimator_exporters import BestExporter, FinalExporter, LatestExporter, StepExporter
from estimator_exporters.bundle.write import described
from estimator_exporters.exporters import best
from estimator_exporters.exporters.records import read_record, write_record
from estimator_testing.exporter_suite import FakeExporting


def nothing():
    return None


class TestBest(ExporterSuite):
    def make(self):
        return BestExporter("best", nothing)


class TestBestKeepingTheBest(ExporterSuite):
    def make(self):
        return BestExporter("best", nothing, keep="best", exports_to_keep=2)


class TestFinal(ExporterSuite):
    def make(self):
        return FinalExporter("final", nothing)


class TestLatest(ExporterSuite):
    def make(self):
        return LatestExporter("latest", nothing, exports_to_keep=2)


class TestStep(ExporterSuite):
    def make(self):
        return StepExporter("step", nothing, every_n_steps=20)


def record(directory, step, **metrics):
    """Records an evaluation."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    line = {"global_step": step, "metrics": metrics, "checkpoint_path": None, "wall_time": 0.0}
    with (directory / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def course(exporter, model_dir, losses, first_step=10, eval_name=None):
    """Whether each evaluation of a sequence is exported. Each is recorded before the exporter sees it."""
    estimator = FakeExporting(model_dir)
    path = str(Path(model_dir) / "export" / exporter.name)
    exported = []
    for number, loss in enumerate(losses):
        step = first_step + 10 * number
        record(estimator.eval_dir(eval_name), step, loss=loss)
        result = {"loss": loss, "global_step": step}
        exported.append(exporter.export(estimator, path, f"checkpoints/{step}", result, False) is not None)
    return exported


def kept(model_dir):
    """The results of the recorded exports, best first."""
    state = json.loads((Path(model_dir) / "export" / "best" / "best.json").read_text())
    missing = [
        one["path"] for one in state["exports"] if not (Path(model_dir) / "export" / "best" / one["path"]).is_dir()
    ]
    assert not missing, f"recorded, but not there: {missing}"
    return [entry["eval_result"] for entry in state["exports"]]


def kept_losses(model_dir):
    return [result["loss"] for result in kept(model_dir)]


def test_the_true_best_is_remembered_over_restarts(tmp_path):
    assert course(BestExporter("best", nothing), tmp_path, [5.0, 4.0]) == [True, True]
    assert course(BestExporter("best", nothing), tmp_path, [9.0, 4.5, 3.0], first_step=30) == [False, False, True]


def test_evaluations_on_record_count_where_nothing_was_exported(tmp_path):
    """tf.estimator exports the first evaluation after a start, however bad it is (its case 44)."""
    record(tmp_path / "eval", 1000, loss=50.0)
    record(tmp_path / "eval", 2000, loss=60.0)
    assert course(BestExporter("best", nothing), tmp_path, [100.0, 10.0, 20.0], first_step=2010) == [False, True, False]


def test_a_named_evaluation_has_its_own_record(tmp_path):
    record(tmp_path / "eval", 1, loss=0.0)
    record(tmp_path / "eval_val", 1, loss=50.0)
    exporter = BestExporter("best", nothing)
    exporter.used_in("val")
    assert course(exporter, tmp_path, [100.0, 10.0], eval_name="val") == [False, True]


def test_in_the_next_training_it_reads_the_record_of_the_evaluation_there(tmp_path):
    record(tmp_path / "eval_old", 1, loss=0.0)
    record(tmp_path / "eval_new", 1, loss=50.0)
    exporter = BestExporter("best", nothing)
    exporter.used_in("old")
    exporter.used_in("new")
    assert course(exporter, tmp_path, [100.0, 10.0], eval_name="new") == [False, True]


def test_a_name_given_to_the_exporter_wins(tmp_path):
    record(tmp_path / "eval_val", 1, loss=50.0)
    exporter = BestExporter("best", nothing, eval_name="val")
    exporter.used_in(None)
    assert course(exporter, tmp_path, [100.0, 10.0]) == [False, True]


_KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from estimator_exporters.exporters.records import read_record, write_record
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_record(Path(sys.argv[1]), {"exports": []})
"""


def test_drafts_of_processes_that_are_gone_are_removed(tmp_path):
    path = tmp_path / "export" / "best" / "best.json"
    path.parent.mkdir(parents=True)
    kept = path.with_name(".best.json.mine")
    kept.touch()
    assert subprocess.run([sys.executable, "-c", _KILLED_WRITER, path], timeout=60).returncode == -signal.SIGKILL
    assert len(list(path.parent.iterdir())) == 2
    write_record(path, {"exports": [1]})
    assert sorted(path.parent.iterdir()) == [kept, path]
    assert read_record(path) == {"exports": [1]}


def test_a_damaged_memory_is_made_good_by_the_record(tmp_path):
    course(BestExporter("best", nothing), tmp_path, [5.0, 4.0])
    for damage in ("", "[]", '{"exports": 3}', '{"exports": [{"path": "../../x"}]}', "\x00"):
        (tmp_path / "export" / "best" / "best.json").write_text(damage)
        assert course(BestExporter("best", nothing), tmp_path, [4.5], first_step=30) == [False]


def test_the_memory_is_made_good_for_a_lost_record(tmp_path):
    course(BestExporter("best", nothing), tmp_path, [5.0, 4.0])
    (tmp_path / "eval" / "metrics.jsonl").unlink()
    assert course(BestExporter("best", nothing), tmp_path, [4.5, 3.5], first_step=30) == [False, True]


def test_nan_is_never_the_best_for_long(tmp_path):
    nan = float("nan")
    assert course(BestExporter("best", nothing), tmp_path, [nan, 4.0, nan, 3.0]) == [True, True, False, True]


def test_equal_is_not_better(tmp_path):
    assert course(BestExporter("best", nothing), tmp_path, [4.0, 4.0]) == [True, False]


def test_keeps_the_best_by_the_metric(tmp_path):
    exporter = BestExporter("best", nothing, keep="best", exports_to_keep=2)
    assert course(exporter, tmp_path, [5.0, 6.0, 4.0, 4.5, 7.0]) == [True, True, True, True, False]
    assert kept_losses(tmp_path) == [4.0, 4.5]
    assert len([path for path in (tmp_path / "export" / "best").iterdir() if path.is_dir()]) == 2
    again = BestExporter("best", nothing, keep="best", exports_to_keep=2)
    assert course(again, tmp_path, [4.2, 8.0], first_step=100) == [True, False]
    assert kept_losses(tmp_path) == [4.0, 4.2]


@pytest.mark.parametrize("killed_before", ["deletion", "record"])
def test_a_kill_around_a_deletion_leaves_entries_and_exports_alike(tmp_path, monkeypatch, killed_before):
    def killed(*_args):
        raise KeyboardInterrupt

    assert course(BestExporter("best", nothing, keep="best", exports_to_keep=2), tmp_path, [5.0, 6.0]) == [True, True]
    with monkeypatch.context() as patch:
        patch.setattr(best, "remove_export" if killed_before == "deletion" else "write_record", killed)
        with pytest.raises(KeyboardInterrupt):
            course(BestExporter("best", nothing, keep="best", exports_to_keep=2), tmp_path, [4.0], first_step=100)

    def on_record_and_there():
        folder = tmp_path / "export" / "best"
        entries = json.loads((folder / "best.json").read_text())["exports"]
        return {entry["path"] for entry in entries}, {path.name for path in folder.iterdir() if path.is_dir()}

    entries, exports = on_record_and_there()
    assert len(entries) == 2
    assert entries < exports  # no recorded entry is lost
    if killed_before == "deletion":
        again = BestExporter("best", nothing, keep="best", exports_to_keep=2)
        assert course(again, tmp_path, [7.0], first_step=200) == [False]
        entries, exports = on_record_and_there()
        assert entries == exports
        assert kept_losses(tmp_path) == [4.0, 5.0]


@pytest.mark.parametrize(("loss", "losses"), [(4.5, [4.0, 4.5]), (9.0, [4.0, 5.0])])
def test_an_export_without_an_entry_is_ranked_by_the_next_call(tmp_path, loss, losses):
    """An evaluator was killed between an export and its record, and starts again at a later checkpoint."""

    def made():
        return BestExporter("best", nothing, keep="best", exports_to_keep=2)

    def on_record_and_there():
        entries = json.loads((folder / "best.json").read_text())["exports"]
        return {entry["path"] for entry in entries}, {path.name for path in folder.iterdir() if path.is_dir()}

    folder = tmp_path / "export" / "best"
    assert course(made(), tmp_path, [4.0, 5.0]) == [True, True]
    record(tmp_path / "eval", 30, loss=loss)
    for name, step in (("1900000000", 30), ("1900000001", 31), ("1900000002", None)):
        (folder / name).mkdir()
        (folder / name / "manifest.json").write_text(json.dumps({"global_step": step}))
    assert course(made(), tmp_path, [6.0], first_step=40) == [False]
    entries, exports = on_record_and_there()
    assert exports - entries == {"1900000001", "1900000002"}  # exports without an evaluation, so they are not its own
    assert entries <= exports
    assert kept_losses(tmp_path) == losses


def test_an_older_export_of_a_step_has_no_place_beside_its_newest(tmp_path):
    """An example is an export for another receiver, from a process that was killed before it recorded the export."""
    exporter = BestExporter("best", nothing, keep="best", exports_to_keep=2)
    assert course(exporter, tmp_path, [5.0, 4.0]) == [True, True]
    older = tmp_path / "export" / "best" / "1600000000"
    older.mkdir()
    (older / "manifest.json").write_text(json.dumps({"global_step": 20}))
    assert course(exporter, tmp_path, [6.0], first_step=30) == [False]
    assert kept_losses(tmp_path) == [4.0, 5.0]


def test_an_export_that_fails_is_not_remembered(tmp_path):
    estimator, exporter, path = FakeExporting(tmp_path), BestExporter("best", nothing), str(tmp_path / "best")
    estimator.fails = True
    with pytest.raises(ExportError, match="the disk is full"):
        exporter.export(estimator, path, "checkpoints/10", {"loss": 1.0, "global_step": 10}, False)
    estimator.fails = False
    assert exporter.export(estimator, path, "checkpoints/10", {"loss": 1.0, "global_step": 10}, False)


def test_a_metric_that_is_missing_is_named(tmp_path):
    def more_accurate(best_eval_result, current_eval_result):
        return current_eval_result["accuracy"] > best_eval_result["accuracy"]

    exporter = BestExporter("best", nothing, compare_fn=more_accurate)
    with pytest.raises(
        ArgumentError, match=r"'accuracy', which the evaluation does not return\. It returns \['global_step', 'loss'\]"
    ):
        exporter.export(FakeExporting(tmp_path), str(tmp_path), "checkpoints/1", {"loss": 1.0, "global_step": 1}, False)


@pytest.mark.parametrize("keep", ["newest", "best"])
def test_compare_fn_is_asked_once_about_each_evaluation(tmp_path, keep):
    asked = []

    def smaller(best_eval_result, current_eval_result):
        asked.append((best_eval_result["loss"], current_eval_result["loss"]))
        return current_eval_result["loss"] < best_eval_result["loss"]

    exporter = BestExporter("best", nothing, compare_fn=smaller, keep=keep, exports_to_keep=1)
    assert course(exporter, tmp_path, [5.0, 6.0, 4.0, 4.5, 3.0, 8.0]) == [True, False, True, False, True, False]
    assert asked == [(5.0, 5.0), (5.0, 6.0), (5.0, 4.0), (4.0, 4.5), (4.0, 3.0), (3.0, 8.0)]


@pytest.mark.parametrize("keep", ["newest", "best"])
def test_compare_fn_gets_arrays_and_texts_whole_also_after_a_restart(tmp_path, keep):
    """They are recorded as lists, and after a restart the exporter reads them from the record."""

    def recall(best_eval_result, current_eval_result):
        assert {best_eval_result["of"], current_eval_result["of"]} == {"test"}
        return current_eval_result["recall"].mean() > best_eval_result["recall"].mean()

    def made():
        return BestExporter("best", nothing, compare_fn=recall, keep=keep, exports_to_keep=1)

    exporter, estimator, path = made(), FakeExporting(tmp_path), str(tmp_path / "export" / "best")
    for step, of_classes, better in ((10, (0.1, 0.2), True), (20, (0.5, 0.7), True), (30, (0.6, 0.2), False)):
        recalls, facts = np.array(of_classes, np.float32), {"loss": 1.0, "of": "test"}
        record(estimator.eval_dir(), step, recall=recalls.tolist(), **facts)
        for asked in (exporter, made()):
            result = {"recall": recalls, "global_step": step, **facts}
            found = asked.export(estimator, path, f"checkpoints/{step}", result, False)
            assert (found is not None) == (better and asked is exporter)
    assert [entry["recall"] for entry in kept(tmp_path)] == [np.array((0.5, 0.7), np.float32).tolist()]


def more_accurate(best_eval_result, current_eval_result):
    return current_eval_result["accuracy"] > best_eval_result["accuracy"]


def exported_by(exporter, model_dir, step, **metrics):
    """Whether an evaluation is exported. It is recorded before."""
    estimator = FakeExporting(model_dir)
    record(estimator.eval_dir(), step, **metrics)
    path = str(Path(model_dir) / "export" / exporter.name)
    return exporter.export(estimator, path, f"checkpoints/{step}", {**metrics, "global_step": step}, False) is not None


def test_another_compare_fn_keeps_what_it_finds_best(tmp_path):
    by_loss = BestExporter("best", nothing, keep="best", exports_to_keep=2)
    assert exported_by(by_loss, tmp_path, 10, loss=1.0, accuracy=0.5)
    assert exported_by(by_loss, tmp_path, 20, loss=2.0, accuracy=0.9)
    by_accuracy = BestExporter("best", nothing, compare_fn=more_accurate, keep="best", exports_to_keep=2)
    assert exported_by(by_accuracy, tmp_path, 30, loss=3.0, accuracy=0.7)
    assert [entry["accuracy"] for entry in kept(tmp_path)] == [0.9, 0.7]


def test_exports_without_the_metric_make_room_for_those_that_have_it(tmp_path):
    by_loss = BestExporter("best", nothing, keep="best", exports_to_keep=2)
    assert exported_by(by_loss, tmp_path, 10, loss=1.0)
    assert exported_by(by_loss, tmp_path, 20, loss=2.0)
    by_accuracy = BestExporter("best", nothing, compare_fn=more_accurate, keep="best", exports_to_keep=2)
    found = [
        exported_by(by_accuracy, tmp_path, step, loss=3.0, accuracy=accuracy)
        for step, accuracy in ((30, 0.5), (40, 0.4), (50, 0.3))
    ]
    assert found == [True, True, False]
    assert [entry["accuracy"] for entry in kept(tmp_path)] == [0.5, 0.4]


def test_a_checkpoint_that_is_evaluated_again_keeps_its_export(tmp_path):
    base, checkpoint = tmp_path / "export" / "best", tmp_path / "checkpoints" / "10"
    export = exported_already(base, checkpoint)
    for loss in (5.0, 4.9):  # from other processes, on machines that differ in the last digits
        exporter = BestExporter("best", nothing, keep="best", exports_to_keep=1)
        result = {"loss": loss, "global_step": 10}
        assert exporter.export(FakeExporting(tmp_path), str(base), str(checkpoint), result, True) == str(export)
    assert kept_losses(tmp_path) == [4.9]


def test_an_export_that_was_made_and_not_recorded_is_recorded_by_the_next_call(tmp_path, monkeypatch):
    base, checkpoint = tmp_path / "export" / "best", tmp_path / "checkpoints" / "10"
    export = exported_already(base, checkpoint)
    exporter = BestExporter("best", nothing)
    call = FakeExporting(tmp_path), str(base), str(checkpoint), {"loss": 5.0, "global_step": 10}, True

    def full(*_):
        raise OSError(errno.ENOSPC, "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("estimator_exporters.exporters.best.write_record", full)
        with pytest.raises(OSError, match="the disk is full"):
            exporter.export(*call)
    assert exporter.export(*call) == str(export)
    assert kept_losses(tmp_path) == [5.0]


def test_steps_are_exported_once_each_over_restarts(tmp_path):
    def made():
        return StepExporter("step", nothing, steps_to_keep=[15, 40, 41])

    assert course(made(), tmp_path, [1.0] * 3) == [False, True, False]  # steps 10, 20, 30
    assert course(made(), tmp_path, [1.0] * 3, first_step=30) == [False, True, True]  # steps 30, 40, 50
    assert course(made(), tmp_path, [1.0] * 2, first_step=60) == [False, False]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: BestExporter("", nothing), ArgumentError, "cannot have a name"),
        (lambda: BestExporter("b", None), ArgumentTypeError, "must be a function"),
        (lambda: BestExporter("b", nothing, compare_fn=None), ArgumentTypeError, "compare_fn"),
        (lambda: BestExporter("b", nothing, compare_fn=lambda a, b: True), ArgumentError, "best_eval_result argument"),
        (lambda: BestExporter("b", nothing, exports_to_keep=0), ArgumentError, "positive number. Got 0"),
        (lambda: BestExporter("b", nothing, keep="best", exports_to_keep=0), ArgumentError, "positive number"),
        (lambda: BestExporter("b", nothing, keep="all"), ArgumentError, "'newest' or 'best'"),
        (lambda: LatestExporter("l", nothing, exports_to_keep=-1), ArgumentError, "positive number"),
        (lambda: StepExporter("s", nothing), ArgumentError, "exactly one"),
        (lambda: StepExporter("s", nothing, steps_to_keep=[0]), ArgumentError, "positive integers"),
    ],
)
def test_arguments_are_refused_at_once(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_only_the_final_call_exports(tmp_path):
    exporter, estimator = FinalExporter("final", nothing), FakeExporting(tmp_path)
    path = str(tmp_path / "export" / "final")
    calls = [(10, False), (20, False), (30, True)]
    written = [
        exporter.export(estimator, path, f"checkpoints/{step}", {"loss": 1.0, "global_step": step}, final)
        for step, final in calls
    ]
    assert [each is not None for each in written] == [False, False, True]


def exported_already(export_path, checkpoint, **manifest):
    """An export of a process that was killed before it recorded the export. `manifest` overrides some entries."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    (checkpoint / "manifest.json").write_text("sealed")
    sha256 = hashlib.sha256(b"sealed").hexdigest()
    export = export_path / "1700000000"
    export.mkdir(parents=True)
    provenance = {"checkpoint_sha256": sha256, "client_transforms": 0} | manifest.pop("provenance", {})
    facts = {"format": "stablehlo", "provenance": provenance, **manifest}
    (export / "manifest.json").write_text(json.dumps(facts))
    return export


def test_an_export_that_a_killed_process_has_made_is_recorded_and_not_made_again(tmp_path):
    base, checkpoint = tmp_path / "export" / "best", tmp_path / "checkpoints" / "10"
    export = exported_already(base, checkpoint)
    exporter, estimator = BestExporter("best", nothing), FakeExporting(tmp_path)
    result = {"loss": 3.0, "global_step": 10}
    assert exporter.export(estimator, str(base), str(checkpoint), result, False) == str(export)
    assert [path.name for path in base.iterdir() if path.is_dir()] == ["1700000000"]
    assert kept_losses(tmp_path) == [3.0]


@pytest.mark.parametrize("differs", [{"format": "onnx"}, {"provenance": {"checkpoint_sha256": "of another"}}, {}])
def test_an_export_of_something_else_does_not_count_as_this_one(tmp_path, differs):
    base, checkpoint = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10"
    export = exported_already(base, checkpoint, **differs)
    if not differs:
        (export / "manifest.json").write_text("no JSON")
    exporter, estimator = FinalExporter("final", nothing), FakeExporting(tmp_path)
    assert exporter.export(estimator, str(base), str(checkpoint), {"global_step": 10}, True) != str(export)


@pytest.mark.parametrize("asset", ["other words", None])
def test_a_finished_run_is_exported_again_for_other_assets(tmp_path, asset):
    base, checkpoint, words = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10", tmp_path / "words.txt"
    words.write_text("words")
    files = {"assets/words.txt": hashlib.sha256(b"words").hexdigest(), "programs/0.jaxexport": "any"}
    export = exported_already(base, checkpoint, files=files)
    call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
    same = FinalExporter("final", nothing, assets_extra={"words.txt": str(words)})
    assert same.export(*call) == str(export)
    words.write_text(asset or "")
    assets = None if asset is None else {"words.txt": str(words)}
    assert FinalExporter("final", nothing, assets_extra=assets).export(*call) != str(export)


@pytest.mark.parametrize(("name", "path"), [("words.txt", "~/words.txt"), ("./in//words.txt", "{}/words.txt")])
def test_a_finished_run_is_not_exported_again_whatever_way_its_assets_are_written(tmp_path, monkeypatch, name, path):
    """The writer accepts paths below the home directory and paths with redundant parts, as the system does."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "words.txt").write_text("words")
    base, checkpoint = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10"
    written = {"words.txt": "assets/words.txt"}.get(name, "assets/in/words.txt")
    export = exported_already(base, checkpoint, files={written: hashlib.sha256(b"words").hexdigest()})
    exporter = FinalExporter("final", nothing, assets_extra={name: path.format(tmp_path)})
    call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
    assert exporter.export(*call) == str(export)


def test_assets_are_read_only_where_the_export_is_of_this_checkpoint(tmp_path, monkeypatch):
    """Otherwise each export of a training run would read all assets, which may be large."""
    monkeypatch.setattr("estimator_exporters.exporters.base.checksum", lambda path: pytest.fail(f"{path} was read"))
    base, checkpoint = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10"
    export = exported_already(base, checkpoint, provenance={"checkpoint_sha256": "of another"})
    exporter = FinalExporter("final", nothing, assets_extra={"words.txt": str(tmp_path / "words.txt")})
    call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
    assert exporter.export(*call) != str(export)


def test_an_asset_that_changes_in_place_is_exported_by_the_same_exporter(tmp_path):
    base, checkpoint, words = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10", tmp_path / "words.txt"
    words.write_text("words")
    exporter, estimator = (
        FinalExporter("final", nothing, assets_extra={"words.txt": str(words)}),
        FakeExporting(tmp_path),
    )
    call = estimator, str(base), str(checkpoint), {"global_step": 10}, True
    assert exporter.export(*call) is not None
    assert exporter.export(*call) is None
    words.write_text("other words")
    assert exporter.export(*call) is not None


def test_a_finished_run_is_exported_again_for_another_receiver(tmp_path):
    base, checkpoint = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10"
    exported_already(base, checkpoint, receiver={"x": {"shape": [None, 2], "dtype": "float32"}})

    def taken_over(**features):
        receiver_fn = build_raw_serving_input_receiver_fn(features)
        call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
        return FinalExporter("final", receiver_fn).export(*call) == str(base / "1700000000")

    assert taken_over(x=Feature((None, 2)))
    assert not taken_over(x=Feature((None, 3)))


def test_a_finished_run_is_exported_again_for_other_transforms_of_the_receiver(tmp_path):
    """Examples are transforms that parse tf.Examples, which always have the same name."""
    base, checkpoint, column = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10", Feature((None, 2))
    both = {"v": column, "w": column}
    made_with = {"receiver": described(both), "provenance": {"client_transforms": 1}}
    export = exported_already(base, checkpoint, **made_with)

    def taken_over(**names):
        def receiver_fn():
            features = dict.fromkeys(names.values(), column)
            return ServingInputReceiver(features, both, transforms=[Rename(names)])

        call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
        return FinalExporter("final", receiver_fn).export(*call) == str(export)

    assert taken_over(v="y", w="x")  # as for an export at a URL, the transforms are not here
    save_transforms([Rename({"v": "x", "w": "y"}), Rename({"x": "z"})], export / "transforms" / "input")
    assert taken_over(v="x", w="y")
    assert not taken_over(v="y", w="x")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_finished_run_is_exported_again_where_its_receiver_has_more_or_fewer_transforms(tmp_path, count):
    """A receiver without transforms has a beginning of any. Those of the Estimator follow."""
    base, checkpoint, column = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10", Feature((None, 2))
    export = exported_already(
        base, checkpoint, receiver=described({"x": column}), provenance={"client_transforms": count}
    )
    save_transforms([Rename({"x": "x"})] * 3, export / "transforms" / "input")

    def taken_over(transforms):
        receiver = ServingInputReceiver({"x": column}, {"x": column}, transforms=[Rename({"x": "x"})] * transforms)
        call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
        return FinalExporter("final", lambda: receiver).export(*call) == str(export)

    taken = [taken_over(count)]  # another export is newer
    assert (taken, taken_over((count + 1) % 3)) == ([True], False)


def test_a_finished_run_is_exported_again_where_two_features_change_their_names(tmp_path):
    base, checkpoint = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10"
    one, other = Feature((None, 2)), Feature((None, 2))
    sent = {"v": one, "w": other}
    made_with = {"receiver": described(sent), "provenance": {"client_transforms": 1}}
    export = exported_already(base, checkpoint, **made_with)
    save_transforms([Rename({"v": "x", "w": "y"})], export / "transforms" / "input")

    def taken_over(**features):
        call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
        exporter = FinalExporter("final", lambda: ServingInputReceiver(features, sent))
        return exporter.export(*call) == str(export)

    assert taken_over(x=one, y=other)
    assert not taken_over(x=other, y=one)


def test_a_receiver_that_fits_what_training_saw_is_not_exported_again(tmp_path):
    class Fits(ServingInputReceiver):
        def fitted(self, places):
            return ServingInputReceiver({"x": Feature((None, places["x"]))})

    base, checkpoint = tmp_path / "export" / "final", tmp_path / "checkpoints" / "10"
    facts = {"provenance": {"training_saw": {"x": {"places": 3, "dtype": "float32"}}}}
    export = exported_already(base, checkpoint, receiver=described({"x": Feature((None, 3))}), **facts)
    call = FakeExporting(tmp_path), str(base), str(checkpoint), {"global_step": 10}, True
    assert FinalExporter("final", lambda: Fits({"x": Feature((None, 1))})).export(*call) == str(export)


class InBackground(FakeExporting):
    """A background export is complete after it is waited for."""

    def start_export(self, *arguments, **more):
        return SimpleNamespace(wait=lambda: self.export_saved_model(*arguments, **more))


@pytest.mark.parametrize("make", [BestExporter, partial(StepExporter, every_n_steps=8)], ids=["best", "step"])
def test_what_the_next_call_waits_for_is_exported_once_and_returned_by_it(tmp_path, make):
    exporter, estimator = make("e", nothing, background=True), InBackground(tmp_path)
    returned = []
    for step in (8, 10, 12):
        result = {"loss": float(step), "global_step": step}
        record(estimator.eval_dir(), step, loss=result["loss"])
        returned.append(exporter.export(estimator, str(tmp_path / "e"), f"checkpoints/{step}", result, False))
    assert [made for _, made in estimator.exports] == ["checkpoints/8"]
    assert returned == [None, estimator.exports[0][0], None]


def test_the_latest_exporter_in_the_background_returns_what_is_complete(tmp_path):
    exporter, estimator = LatestExporter("e", nothing, background=True), InBackground(tmp_path)
    returned = [
        exporter.export(estimator, str(tmp_path / "e"), f"checkpoints/{step}", {"global_step": step}, False)
        for step in (8, 10)
    ]
    assert returned == [None, estimator.exports[0][0]]


def test_a_step_that_was_exported_and_not_noted_is_not_exported_again(tmp_path):
    """An evaluator was killed between the export and its record, and starts again at a later checkpoint."""
    export = tmp_path / "export" / "step" / "1700000000"
    export.mkdir(parents=True)
    (export / "manifest.json").write_text(json.dumps({"global_step": 40}))
    assert course(StepExporter("step", nothing, every_n_steps=40), tmp_path, [1.0] * 4, first_step=50) == [
        *(False, False, False),
        True,
    ]
