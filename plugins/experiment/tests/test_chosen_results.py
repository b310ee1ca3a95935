"""Tests of the results for BestExporter and early stopping: an evaluation belongs to the checkpoint of its step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec


class Exporter:
    """Records the steps that it exports."""

    name = "e"

    def __init__(self) -> None:
        self.steps: list[int] = []

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> str:
        assert int(Path(checkpoint_path).name) == eval_result["global_step"]
        self.steps.append(eval_result["global_step"])
        return export_path


def steps_of_checkpoints(estimator: ec.Estimator) -> list[int]:
    return list(ec.read_eval_metrics(estimator.eval_dir(), with_checkpoint=True))


@pytest.mark.parametrize(
    ("frequency", "saves", "evaluated", "exported"),
    [
        (5, 5, [5, 10, 15, 20], [5, 10, 15, 20]),
        (5, 10, [5, 10, 15, 20], [10, 20]),
        (10, 5, [10, 20], [10, 20]),
        (6, 4, [6, 12, 18, 20], [12, 20]),
        (0, 5, [20], [20]),
    ],
)
def test_an_evaluation_due_at_the_step_of_a_checkpoint_is_one_of_it(
    make_estimator: Any, train_input: Any, eval_input: Any, frequency: int, saves: int, evaluated: Any, exported: Any
) -> None:
    exporter, estimator = Exporter(), make_estimator(save_checkpoints_steps=saves)
    plan = ec.Experiment(
        estimator, train_input, eval_input, train_steps=20, min_eval_frequency=frequency, export_strategies=exporter
    )
    plan.train_and_evaluate()
    assert [row["global_step"] for row in estimator.history.evaluations] == evaluated
    assert exporter.steps == exported
    assert steps_of_checkpoints(estimator) == exported


@pytest.mark.plugins
def test_losses_that_only_grow_leave_the_first_checkpoint_the_best(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    from estimator_exporters import BestExporter

    def turned() -> Any:
        return ((features, -labels) for features, labels in eval_input())

    estimator = make_estimator(save_checkpoints_steps=4, keep_checkpoint_max=1)
    best = BestExporter("best", ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3))}))
    plan = ec.Experiment(estimator, train_input, turned, train_steps=20, min_eval_frequency=4, export_strategies=best)
    plan.train_and_evaluate()
    losses = [row["loss"] for row in estimator.history.evaluations]
    assert losses == sorted(losses)
    record = json.loads((Path(estimator.model_dir) / "export" / "best" / "best.json").read_text())
    assert [entry["eval_result"]["global_step"] for entry in record["exports"]] == [4]
