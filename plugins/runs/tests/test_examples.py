"""Tests of the examples that consist of one file."""

from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.summaries import read_eval_metrics
from estimator_runs import open_folds
from estimator_runs.folds.fold import fold_experiment

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.plugins
@pytest.mark.libraries
@pytest.mark.parametrize(
    ("name", "steps", "accuracy"),
    [
        ("iris.toml", 400, 0.9),
        pytest.param("two_tower.toml", 200, 0.7, marks=pytest.mark.slow),
        pytest.param("bert.toml", 30, 0.9, marks=pytest.mark.slow),
        pytest.param("digits.toml", 200, 0.95, marks=pytest.mark.slow),
    ],
    ids=["iris", "two_tower", "bert", "digits"],
)
def test_trains_from_a_file_alone(tmp_path, name, steps, accuracy):
    settings = ["--set", f"train.max_steps={steps}", "--set", "run_config.default_hooks=false"]
    assert main(["run", str(EXAMPLES / name), "--model-dir", str(tmp_path / "run"), *settings]) == 0
    results = read_eval_metrics(tmp_path / "run" / "eval")
    metric = "eval_accuracy" if name == "bert.toml" else "accuracy"  # the name in google-research/bert
    assert results[steps][metric] > accuracy


@pytest.mark.slow
@pytest.mark.plugins
@pytest.mark.libraries
def test_folds_of_a_table_become_one_export(tmp_path):
    """The labels are words, which are split, learned and returned."""
    file = tmp_path / "iris.toml"
    columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    serving = "".join(f'{name} = {{ shape = [-1], dtype = "float32" }}\n' for name in columns)
    file.write_text(f'include = ["{EXAMPLES / "iris.toml"}"]\n[serving.features]\n{serving}')
    settings = ["train.max_steps=60", "crossval.folds=2", "crossval.splitter=stratified", "crossval.way=apart"]
    given = [word for text in settings for word in ("--set", text)]
    assert main(["crossval", str(file), "--dir", str(tmp_path / "folds"), "--export", *given]) == 0
    folds = open_folds(file, tmp_path / "folds", settings)
    requests = {name: folds.rows.features[name] for name in columns}
    (export,) = (tmp_path / "folds" / "ensemble" / "export").glob("*")
    served = ec.export.load(export).raw_signatures["predict"](**requests)
    inputs = ec.inputs.numpy_input_fn(requests, batch_size=150, num_epochs=1, shuffle=False)
    each = [list(fold_experiment(folds, fold).estimator.predict(inputs)) for fold in range(2)]
    mean = np.mean([[row["probabilities"] for row in rows] for rows in each], axis=0)
    np.testing.assert_allclose(served["probabilities"], mean, atol=1e-6)
    names = ["setosa", "versicolor", "virginica"]
    assert served["classes"].ravel().tolist() == [names[place] for place in mean.argmax(axis=1)]
    assert [name.decode() for name in folds.rows.labels[:1]] == names[:1]
    assert np.mean(served["classes"].ravel() == folds.rows.labels.astype(str)) > 0.8
