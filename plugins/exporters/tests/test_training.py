"""Tests of exporters in train_and_evaluate: every end of training, background exports, named evaluations."""

import shutil
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ExportError
from estimator_exporters import BestExporter, FinalExporter, LatestExporter
from plugins.exporters.tests.small_model import input_fn, model_fn, receiver_fn, rows


def run(model_dir, *, max_steps, exporters, count=16, hooks=(), name=None):
    estimator = ec.Estimator(
        model_fn, config=ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, save_checkpoints_steps=2)
    )
    train = ec.inputs.numpy_input_fn(*rows(count), batch_size=8, num_epochs=None if max_steps else 1, shuffle=False)
    result = ec.train_and_evaluate(
        estimator,
        ec.TrainSpec(train, max_steps=max_steps, hooks=hooks),
        ec.EvalSpec(input_fn(), exporters=exporters, name=name),
    )
    return estimator, result


class StopAt(ec.Hook):
    def __init__(self, step):
        self.step = step

    def next_step(self, step):
        return self.step if step < self.step else None

    def after_step(self, run, step, out):
        if step >= self.step:
            run.request_stop("enough")


def weights_of(path):
    return ec.export.load(path).manifest["files"]["variables.safetensors"]


@pytest.mark.parametrize("end", ["steps", "input", "early stop", "finished before"])
def test_the_final_exporter_exports_the_last_state_however_training_ends(tmp_path, end):
    if end == "finished before":
        run(tmp_path, max_steps=4, exporters=[])
    estimator, (metrics, exports) = run(
        tmp_path,
        max_steps=None if end == "input" else 4 if end in ("steps", "finished before") else 100,
        count=24,
        hooks=[StopAt(3)] if end == "early stop" else [],
        exporters=[FinalExporter("final", receiver_fn)],
    )
    step = {"steps": 4, "input": 3, "early stop": 3, "finished before": 4}[end]
    assert metrics["global_step"] == step
    assert exports == [estimator.latest_export("final")]
    loaded = ec.export.load(exports[0])
    assert loaded.manifest["global_step"] == step
    features, _ = rows(3)
    expected = estimator.predictor()(features)["logits"]
    np.testing.assert_allclose(loaded.signatures["serving_default"](**features)["logits"], expected, atol=1e-6)


def test_no_step_is_exported_twice_and_the_final_call_adds_nothing(tmp_path):
    latest = LatestExporter("latest", receiver_fn, exports_to_keep=None)
    _, (_, exports) = run(tmp_path, max_steps=4, exporters=[latest])
    found = sorted(path for path in (tmp_path / "export" / "latest").iterdir())
    steps = [ec.export.load(path).manifest["global_step"] for path in found]
    assert steps == [2, 4]
    assert exports == [str(found[-1])]


@pytest.mark.parametrize("background", [False, True])
def test_a_run_that_starts_anew_in_its_directory_is_exported_too(tmp_path, background):
    """In a notebook, the exporters survive the deletion of the directory."""
    kept = [LatestExporter("latest", receiver_fn, background=background), FinalExporter("final", receiver_fn)]
    for _ in range(2):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        _, (_, exports) = run(tmp_path / "run", max_steps=2, exporters=kept)
        assert [ec.export.load(path).manifest["global_step"] for path in exports] == [2, 2]


def test_background_exports_hold_what_was_evaluated(tmp_path):
    """The values are copied before training continues. The directories appear when they are complete."""
    kept = {"front": LatestExporter("front", receiver_fn), "back": LatestExporter("back", receiver_fn, background=True)}
    _, (_, exports) = run(tmp_path, max_steps=6, exporters=list(kept.values()))
    hashes = {}
    for name in kept:
        paths = sorted((tmp_path / "export" / name).iterdir())
        hashes[name] = [weights_of(path) for path in paths]
    assert hashes["front"] == hashes["back"]
    assert len(set(hashes["back"])) == 3
    assert [Path(path).parent.name for path in exports] == ["front", "back"]


def test_training_goes_on_while_an_export_is_written(tmp_path, monkeypatch):
    from estimator_exporters.stablehlo import StableHLOFormat

    went_on, seen, write = threading.Event(), [], StableHLOFormat.write

    class GoesOn(ec.Hook):
        def after_step(self, run, step, out):
            if step == 3:
                went_on.set()

    def waits(self, request, directory):
        seen.append(went_on.wait(5))
        write(self, request, directory)

    monkeypatch.setattr(StableHLOFormat, "write", waits)
    latest = LatestExporter("latest", receiver_fn, background=True)
    run(tmp_path, max_steps=3, hooks=[GoesOn()], exporters=[latest])
    assert seen[0], "the export of step 2 is complete before step 3 is done"


def test_a_background_export_that_fails_ends_in_its_error(tmp_path, monkeypatch):
    from estimator_exporters.stablehlo import StableHLOFormat

    def fails(self, request, directory):
        raise ExportError("no room left")

    monkeypatch.setattr(StableHLOFormat, "write", fails)
    with pytest.raises(ExportError, match="no room left"):
        run(tmp_path, max_steps=2, exporters=[LatestExporter("latest", receiver_fn, background=True)])
    assert [path.name for path in (tmp_path / "export" / "latest").iterdir()] == []


def test_the_best_of_a_named_evaluation_is_remembered(tmp_path):
    run(tmp_path, max_steps=2, exporters=[BestExporter("best", receiver_fn)], name="val")
    (first,) = [path for path in (tmp_path / "export" / "best").iterdir() if path.is_dir()]
    (tmp_path / "export" / "best" / "best.json").unlink()
    estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path)))
    record = ec.read_eval_metrics(estimator.eval_dir("val"))
    assert sorted(record) == [2]
    exporter = BestExporter("best", receiver_fn)
    exporter.used_in("val")
    worse = {"loss": record[2]["loss"] + 1, "global_step": 4}
    assert exporter.export(estimator, str(first.parent), estimator.latest_checkpoint(), worse, False) is None


def test_a_better_result_between_checkpoints_keeps_the_best_one_that_there_is(tmp_path, caplog):
    """The loss is 1 at the checkpoint of step 2, 0.1 at step 3, which has none, and 0.5 at that of step 4."""

    def falling(features, labels, mode):
        step = ec.get_variable("steps_done", (), jax.nn.initializers.zeros, trainable=False)
        logits = features["x"] @ ec.get_variable("w", (features["x"].shape[1], 3))
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"logits": logits})
        if mode == ec.ModeKeys.TRAIN:
            ec.set_variable("steps_done", step + 1)
        loss = jnp.array([9.0, 9.0, 1.0, 0.1, 0.5])[step.astype(int)] + 0 * jnp.mean(logits**2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

    config = ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1, save_checkpoints_steps=2)
    estimator = ec.Estimator(falling, config=config)
    train = ec.inputs.numpy_input_fn(*rows(16), batch_size=8, num_epochs=None, shuffle=False)
    spec = ec.EvalSpec(input_fn(), every_steps=1, exporters=[BestExporter("best", receiver_fn)])
    ec.train_and_evaluate(estimator, ec.TrainSpec(train, max_steps=4), spec)
    assert ec.export.load(estimator.latest_export("best")).manifest["global_step"] == 4
    (told,) = [record.getMessage() for record in caplog.records if record.name == "estimator_exporters"]
    assert told.startswith("Exporter best exports step 4. The evaluation at step 3 was better, but no checkpoint holds")
