"""Tests of the recorded exporter cases of tf.estimator, of its known faults and of the known traps, by number."""

import importlib.metadata
import json
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import estimator_core as ec
from estimator_exporters import BestExporter, FinalExporter, LatestExporter
from estimator_testing.exporter_suite import FakeExporting
from plugins.exporters.tests.small_model import input_fn, model_fn, receiver_fn, rows, trained


def recorded(eval_dir, *evaluations):
    """Records evaluations (step, loss)."""
    Path(eval_dir).mkdir(parents=True)
    lines = [{"global_step": step, "metrics": {"loss": loss}, "wall_time": 0.0} for step, loss in evaluations]
    Path(eval_dir, "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def exported(exporter, model_dir, losses, first=3000):
    """Whether each of some losses is exported."""
    estimator, path = FakeExporting(model_dir), str(Path(model_dir, "export", exporter.name))
    return [
        exporter.export(estimator, path, f"checkpoints/{step}", {"loss": loss, "global_step": step}, False) is not None
        for step, loss in enumerate(losses, start=first)
    ]


class Asked:
    """An exporter that records the arguments of its calls."""

    name = "asked"

    def __init__(self):
        self.calls = []

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.calls.append((eval_result["global_step"], checkpoint_path, is_the_final_export))


def run(model_dir, *exporters, max_steps, save_every, batches=None, hooks=()):
    """Runs train_and_evaluate. Returns the estimator, the evaluation's metrics and each exporter's result."""
    config = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, save_checkpoints_steps=save_every)
    repeated = None if batches is None else 1
    train = ec.inputs.numpy_input_fn(*rows(8 * (batches or 4)), batch_size=8, num_epochs=repeated, shuffle=False)
    estimator = ec.Estimator(model_fn, config=config)
    plan = ec.TrainSpec(train, max_steps=max_steps, hooks=hooks), ec.EvalSpec(input_fn(), exporters=exporters)
    return estimator, *ec.train_and_evaluate(estimator, *plan)


def test_case_44_a_new_best_exporter_on_losses_50_and_60(tmp_path):
    """Recorded: 100 is exported because it is the first. Here (fault 5 wins) only 10 is, which is better than 50."""
    recorded(tmp_path / "eval", (1000, 50.0), (2000, 60.0))
    assert exported(BestExporter("best", lambda: None), tmp_path, [100.0, 10.0, 20.0]) == [False, True, False]


def test_case_45_the_newest_exports_stay(tmp_path):
    """With 4 directories and exports_to_keep 2, the two largest 10-digit numbers stay, and so do other directories."""
    base = tmp_path / "export" / "latest"
    for name in ("1000000001", "1000000003", "1000000002", "999", "notes"):
        (base / name).mkdir(parents=True)
    LatestExporter("latest", lambda: None, exports_to_keep=2).export(
        FakeExporting(tmp_path), str(base), "checkpoints/1", {"loss": 1.0, "global_step": 1}, False
    )
    exports = sorted(path.name for path in base.iterdir() if len(path.name) == 10 and path.name.isdigit())
    assert len(exports) == 2
    assert exports[0] == "1000000003"
    assert {"999", "notes"} <= {path.name for path in base.iterdir()}


def test_case_46_two_evaluations_two_exports_one_of_them_final(tmp_path):
    """max_steps 200, evaluations at 100 and 200; in steps of 2 and 4 here."""
    asked = Asked()
    run(tmp_path, asked, max_steps=4, save_every=2)
    steps = [step for step, _, _ in asked.calls]
    assert steps == [2, 4]
    assert [final for _, _, final in asked.calls] == [False, True]


class StopAt(ec.Hook):
    def __init__(self, step):
        self._step = step

    def next_step(self, step):
        return self._step if step < self._step else None

    def after_step(self, run, step, out):
        if step >= self._step:
            run.request_stop("enough")


@pytest.mark.parametrize("end", ["input", "request_stop", "no max_steps"])
def test_fault_4_the_final_exporter_runs_however_training_ends(tmp_path, end):
    _, metrics, (path,) = run(
        tmp_path,
        FinalExporter("final", receiver_fn),
        max_steps=None if end == "no max_steps" else 100,
        save_every=2,
        batches=None if end == "request_stop" else 3,
        hooks=[StopAt(3)] if end == "request_stop" else [],
    )
    assert metrics["global_step"] == 3
    assert ec.export.load(path).manifest["global_step"] == 3


def test_fault_5_a_worse_model_is_not_exported_after_a_restart_and_the_best_is_not_forgotten(tmp_path):
    first = BestExporter("best", lambda: None)
    assert exported(first, tmp_path, [5.0, 3.02]) == [True, True]
    assert exported(BestExporter("best", lambda: None), tmp_path, [100.0, 4.0, 3.0], first=4000) == [False, False, True]


def test_fault_6_a_named_evaluation_keeps_the_memory_of_the_best(tmp_path):
    recorded(tmp_path / "eval_val", (1000, 50.0))
    exporter = BestExporter("best", lambda: None)
    exporter.used_in("val")
    assert exported(exporter, tmp_path, [100.0, 10.0]) == [False, True]


def test_fault_21_exports_of_one_second_have_numbers_of_their_own(estimator, tmp_path):
    started = time.monotonic()
    paths = [Path(estimator.export_saved_model(str(tmp_path / name), receiver_fn)) for name in ("a", "a", "a", "b")]
    stamps = [int(path.name) for path in paths]
    assert stamps[0] < stamps[1] < stamps[2], "later exports of a directory do not have greater numbers"
    assert ec.export.load(tmp_path / "a").manifest == ec.export.load(paths[2]).manifest
    assert time.monotonic() - started < 60


def test_trap_1_an_early_stop_is_exported_as_final_without_a_second_evaluation(tmp_path):
    asked = Asked()
    estimator, _, (none, final) = run(
        tmp_path, asked, FinalExporter("final", receiver_fn), max_steps=100, save_every=3, hooks=[StopAt(3)]
    )
    assert [(step, final) for step, _, final in asked.calls] == [(3, False), (3, True)]
    assert list(ec.read_eval_metrics(estimator.eval_dir())) == [3]
    lines = Path(estimator.eval_dir(), "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 1, "the last step was evaluated twice"
    assert none is None
    assert ec.export.load(final).manifest["global_step"] == 3


def test_trap_23_flatbuffers_is_required_and_not_only_by_an_extra():
    required = importlib.metadata.requires("estimator-exporters") or []
    (found,) = [line for line in required if line.startswith("flatbuffers")]
    assert "extra" not in found
    assert not [line for line in importlib.metadata.requires("jax") or [] if line.startswith("flatbuffers")], (
        "jax requires flatbuffers by now: then the trap is gone"
    )


def test_trap_30_exporters_see_committed_checkpoints_and_leave_training_as_it_was(tmp_path):
    class Committed(Asked):
        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            """Reads the checkpoint while training continues, and exports the live state for comparison."""
            path = estimator.export_saved_model(export_path, receiver_fn, checkpoint_path=checkpoint_path)
            written = ec.load_variables(checkpoint_path)
            features, _ = rows(5)
            hidden = np.tanh(features["x"] @ written["hidden/kernel"])
            found = ec.export.load(path).signatures["serving_default"](**features)["logits"]
            np.testing.assert_allclose(found, hidden @ written["output/kernel"], rtol=0, atol=1e-5)
            self.calls.append(eval_result["global_step"])

    committed = Committed()
    with_exports, _, _ = run(tmp_path / "a", committed, max_steps=6, save_every=2)
    without, _, _ = run(tmp_path / "b", max_steps=6, save_every=2)
    assert committed.calls[:3] == [2, 4, 6]
    for name, value in ec.load_variables(without.latest_checkpoint()).items():
        np.testing.assert_array_equal(ec.load_variables(with_exports.latest_checkpoint())[name], value, name)


def test_trap_36_one_program_for_all_batches_with_weights_as_arguments_traced_once(tmp_path):
    traces = []

    def counting(features, labels, mode):
        traces.append(mode)
        return model_fn(features, labels, mode)

    estimator = trained(tmp_path / "model", counting)
    exports = [estimator.export_saved_model(str(tmp_path / "e"), receiver_fn)]
    traced = traces.count(ec.ModeKeys.PREDICT)
    estimator.train(input_fn(), steps=2)
    exports.append(estimator.export_saved_model(str(tmp_path / "e"), receiver_fn))
    files = [ec.export.load(path).manifest["files"] for path in exports]
    assert files[0]["programs/0.jaxexport"] == files[1]["programs/0.jaxexport"], "weights are constants of the program"
    assert files[0]["variables.safetensors"] != files[1]["variables.safetensors"]
    signature = ec.export.load(exports[1]).manifest["signatures"]["serving_default"]
    assert [program["batch"] for program in signature["program"]] == [None], "not one program for all batch sizes"
    assert traces.count(ec.ModeKeys.PREDICT) == traced, "the second export of a receiver traced the model again"


def test_trap_36_a_model_that_asks_for_its_batch_size_is_named_with_its_line(tmp_path, caplog):
    def curious(features, labels, mode):
        scale = 2.0 if features["x"].shape[0] > 1 else 1.0
        spec = model_fn(features, labels, mode)
        if mode != ec.ModeKeys.PREDICT:
            return spec
        return spec._replace(predictions={"logits": spec.predictions["logits"] * jax.numpy.float32(scale)})

    path = trained(tmp_path / "model", curious).export_saved_model(str(tmp_path / "e"), receiver_fn)
    assert 'scale = 2.0 if features["x"].shape[0] > 1 else 1.0' in caplog.text
    assert ec.export.load(path).signatures["serving_default"](**rows(5)[0])["logits"].shape == (5, 2)
