"""The examples that are a file alone."""

from pathlib import Path

import pytest

from estimator_core.cli import main
from estimator_core.summaries import read_eval_metrics

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.plugins
@pytest.mark.libraries
@pytest.mark.parametrize(
    ("name", "steps", "accuracy"),
    [
        ("iris.toml", 400, 0.9),
        ("two_tower.toml", 200, 0.7),
        ("bert.toml", 30, 0.9),
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
