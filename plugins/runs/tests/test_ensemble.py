"""Tests of all folds, trained by one program and exported as one model."""

import json
from pathlib import Path

import numpy as np
import pytest
from line_files import CODE, TOML
from test_crossval import CROSSVAL, MORE

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ArgumentError, NanLossDuringTrainingError
from estimator_runs import ensemble, export_ensemble, metrics_over_folds, open_folds, out_of_fold, run_folds
from estimator_runs.folds.averaging import averaged

pytest.importorskip("sklearn.model_selection")

SERVING = """
[serving]
features = { x = { shape = [-1], dtype = "float32" } }
"""


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("line_code.py").write_text(CODE + MORE)
    Path("line.toml").write_text(TOML + SERVING + CROSSVAL)
    return Path("line.toml")


def test_folds_together_are_those_alone(line, monkeypatch):
    """One program trains both folds, on 20 and on 40 rows. It continues after a stop between them."""
    settings = ["crossval.splitter=time_ordered", "crossval.folds=2"]
    alone = open_folds(line, Path("alone"), settings)
    run_folds(alone)
    settings.append("crossval.way=together")
    predicted = ec.Estimator.predict

    def cut(self, *args, **kwargs):
        if self.model_dir.endswith("1"):
            raise KeyboardInterrupt
        return predicted(self, *args, **kwargs)

    monkeypatch.setattr(ec.Estimator, "predict", cut)
    together = open_folds(line, Path("together"), settings)
    with pytest.raises(KeyboardInterrupt):
        run_folds(together)
    assert (together.done(0), together.done(1)) == (True, False)
    monkeypatch.setattr(ec.Estimator, "predict", predicted)
    run_folds(open_folds(line, Path("together"), settings))
    rows, columns = out_of_fold(together)
    np.testing.assert_array_equal(rows, out_of_fold(alone)[0])
    np.testing.assert_allclose(columns["y"], out_of_fold(alone)[1]["y"], atol=1e-6)
    theirs = metrics_over_folds(alone)
    for name, one in metrics_over_folds(together).items():
        np.testing.assert_allclose(one.values, theirs[name].values, atol=1e-6)


def test_the_fold_with_a_bad_loss_is_named(line):
    text = (
        Path("line_code.py")
        .read_text()
        .replace("(3 * x + 1)", "np.where(np.arange(start, start + 7)[:len(x)] < 1, np.inf, 3 * x)")
    )
    Path("line_code.py").write_text(text)
    folds = open_folds(line, settings=["crossval.way=apart", "crossval.shuffle=false", "crossval.folds=2"])
    with pytest.raises(NanLossDuringTrainingError, match="of fold 1 at step "):
        run_folds(folds)
    assert (folds.done(0), folds.done(1)) == (True, False)


def test_folds_together_and_in_processes_is_refused(line):
    with pytest.raises(ArgumentError, match=r"remove crossval\.workers"):
        run_folds(open_folds(line, settings=["crossval.way=auto", "crossval.workers=2"]))


def test_the_ensemble_predicts_the_mean_of_the_folds(line):
    folds = open_folds(line, settings=["train.max_steps=2", "crossval.folds=2"])
    run_folds(folds)
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    each = [x * one["slope"] + one["offset"] for one in (ec.load_variables(folds.model_dir(fold)) for fold in range(2))]
    assert np.std(each, axis=0).min() > 1e-4
    found = ensemble(folds).predict(ec.inputs.numpy_input_fn({"x": x}, batch_size=9, num_epochs=1, shuffle=False))
    np.testing.assert_allclose([row["y"] for row in found], np.mean(each, axis=0), rtol=1e-6)


@pytest.mark.plugins
def test_the_export_predicts_the_mean_of_the_folds(line, capsys):
    assert main(["crossval", "line.toml", "--set", "train.max_steps=2", "--export", "--json"]) == 0
    path = Path(json.loads(capsys.readouterr().out.splitlines()[-1])["export"])
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    folds = open_folds(line, settings=["train.max_steps=2"])
    single = [ec.load_variables(folds.model_dir(fold)) for fold in range(4)]
    each = [x * one["slope"] + one["offset"] for one in single]
    assert np.std(each, axis=0).min() > 1e-3
    found = ec.export.load(path).signatures["serving_default"](x=x)
    np.testing.assert_allclose(found["y"], np.mean(each, axis=0), rtol=1e-6)
    assert sorted(ensemble(folds).get_variable_names())[:2] == ["fold_0/offset", "fold_0/slope"]
    assert json.loads((path / "assets/folds/3.json").read_text())["trained_on"] == 45


@pytest.mark.plugins
def test_an_export_needs_the_form_of_requests_before_anything_is_trained(line, capsys):
    line.write_text(TOML + CROSSVAL)
    assert main(["crossval", "line.toml", "--export"]) != 0
    assert "write [serving] in the file" in capsys.readouterr().err
    assert not Path("runs/line-crossval/folds").exists()
    with pytest.raises(ArgumentError, match=r"Folds \[0, 1, 2, 3\] .* have not ended"):
        ensemble(open_folds(line))


def test_folds_that_have_learned_different_things_have_no_export(line):
    learned = "get_variable('known', initializer=np.array([int(config.model_dir[-1])], np.uint8), trainable=False)"
    text = CODE.replace("mode, params):", "mode, params, config):").replace(
        "    if mode", f"    ec.{learned}\n    if mode"
    )
    Path("line_code.py").write_text(text + MORE)
    folds = open_folds(line, settings=["crossval.folds=2", "train.max_steps=1"])
    run_folds(folds)
    with pytest.raises(ArgumentError, match=r"Fold 1 has learned a different 'known' from its rows"):
        export_ensemble(folds)


def test_values_of_several_models_become_one():
    """Two of three models predict class 1. The mean of the probabilities predicts 0."""
    models = [(0.45, 1, 5), (0.45, 1, 7), (0.9, 0, 7)]
    found = averaged(
        [
            {
                "probabilities": np.array([[first, 1 - first]]),
                "class_ids": np.array([[said]]),
                ("other head", "classes"): np.array([[said]]),
                "kind": np.array([kind]),
            }
            for first, said, kind in models
        ]
    )
    np.testing.assert_allclose(found["probabilities"], [[0.6, 0.4]], rtol=1e-6)
    assert found["class_ids"].tolist() == [[0]]
    assert found["other head", "classes"].tolist() == [[1]]
    assert found["kind"].tolist() == [7]
    assert averaged([np.array([True]), np.array([False])]).tolist() == [True]
