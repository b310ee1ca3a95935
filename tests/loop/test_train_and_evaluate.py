"""Tests of train_and_evaluate: which steps are evaluated and exported, and what it returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec


class Exporter:
    """Records its calls."""

    def __init__(self, name: str = "e") -> None:
        self.name, self.calls = name, []

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> str:
        self.calls.append((int(checkpoint_path.rpartition("/")[2]), eval_result["global_step"], is_the_final_export))
        return f"{export_path}/{len(self.calls)}"


def evaluated(estimator: ec.Estimator) -> list[int]:
    return [row["global_step"] for row in estimator.history.evaluations]


def test_evaluates_at_checkpoints_and_exports_finally_at_the_end(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    exporter, estimator = Exporter(), make_estimator()
    metrics, exports = ec.train_and_evaluate(
        estimator, ec.TrainSpec(train_input, max_steps=25), ec.EvalSpec(eval_input, exporters=exporter)
    )
    assert evaluated(estimator) == [10, 20, 25]  # case 48
    assert exporter.calls == [(10, 10, False), (20, 20, False), (25, 25, True)]
    assert metrics["global_step"] == 25
    assert exports == [f"{estimator.model_dir}/export/e/3"]


def test_throttle(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make_estimator()
    ec.train_and_evaluate(
        estimator, ec.TrainSpec(train_input, max_steps=25), ec.EvalSpec(eval_input, throttle_secs=600)
    )
    assert evaluated(estimator) == [10, 25]  # case 48


def test_a_finished_run_is_evaluated_and_exported_again(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    specs = ec.TrainSpec(train_input, max_steps=20), ec.EvalSpec(eval_input, exporters=(exporter := Exporter()))
    first, _ = ec.train_and_evaluate(make_estimator(), *specs)
    again, exports = ec.train_and_evaluate(make_estimator(), *specs)  # fault 3: (None, None)
    assert again == first
    assert exporter.calls[-1] == (20, 20, True)
    assert exports[0] is not None


@pytest.mark.parametrize("ending", ["input", "early stop"])
def test_the_final_export_happens_however_training_ends(
    make_estimator: Any, data: Any, eval_input: Any, ending: str
) -> None:
    """This is trap 1 and faults 3 and 4: the save and evaluation at the last step do not know that it is the last."""

    class Stop(ec.Hook):
        def next_step(self, step: int) -> int | None:
            return 10 if step < 10 and ending == "early stop" else None

        def after_step(self, run: Any, step: int, out: Any) -> None:
            run.request_stop("early")

    epochs = 2 if ending == "input" else None
    training = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=epochs, shuffle=True, seed=1)
    exporter, estimator = Exporter(), make_estimator()
    ec.train_and_evaluate(
        estimator, ec.TrainSpec(training, max_steps=100, hooks=[Stop()]), ec.EvalSpec(eval_input, exporters=exporter)
    )
    assert evaluated(estimator) == [10]  # no second evaluation
    assert exporter.calls == [(10, 10, False), (10, 10, True)]


def test_several_evaluations(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make_estimator()
    specs = [ec.EvalSpec(eval_input), ec.EvalSpec(eval_input, name="again", exporters=Exporter())]
    metrics, exports = ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=10), specs)
    assert set(metrics) == {None, "again"}
    assert metrics[None]["loss"] == metrics["again"]["loss"]
    assert exports[None] == []
    assert exports["again"][0].endswith("/export/e/1")


def test_an_empty_training_input_is_an_error(make_estimator: Any, eval_input: Any) -> None:
    with pytest.raises(ec.EstimatorError, match="Nothing was trained"):
        ec.train_and_evaluate(make_estimator(), ec.TrainSpec(lambda: iter([])), ec.EvalSpec(eval_input))


def test_evaluation_and_exports_see_the_weights_of_their_step(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    seen: dict[int, float] = {}

    class Compare(Exporter):
        def export(
            self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
        ) -> str:
            again = estimator.evaluate(eval_input, checkpoint_path=checkpoint_path, name="compare")
            assert again["loss"] == eval_result["loss"]
            live = estimator.variables
            assert all((ec.load_variables(checkpoint_path)[name] == live[name]).all() for name in live)
            seen[eval_result["global_step"]] = eval_result["loss"]
            return export_path

    ec.train_and_evaluate(
        make_estimator(), ec.TrainSpec(train_input, max_steps=30), ec.EvalSpec(eval_input, exporters=Compare())
    )
    assert len(set(seen.values())) == 3


def test_the_best_checkpoints_by_a_metric_stay(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    best = ec.KeepBest(metric="loss", mode="max", n=1)  # the loss falls, so the first one is the best of these
    estimator = make_estimator(save_checkpoints_steps=10, keep_checkpoint_max=2, keep_checkpoint_best=best)
    ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=60), ec.EvalSpec(eval_input))
    results = ec.read_eval_metrics(estimator.eval_dir())
    highest = max(results, key=lambda step: results[step]["loss"])
    kept = sorted(int(path.name) for path in Path(estimator.model_dir, "checkpoints").iterdir() if path.name.isdigit())
    assert kept == sorted({highest, 50, 60})
    assert highest < 50


def test_exports_that_a_kill_prevented_are_made_when_the_run_continues(
    make_estimator: Any, train_input: Any, eval_input: Any
) -> None:
    class Fails(Exporter):
        def export(self, *args: Any) -> str:
            raise RuntimeError("as a kill: the checkpoint and the evaluation of its step are there, the export is not")

    training = ec.TrainSpec(train_input, max_steps=20)
    with pytest.raises(RuntimeError, match="as a kill"):
        ec.train_and_evaluate(make_estimator(), training, ec.EvalSpec(eval_input, exporters=Fails()))
    exporter, estimator = Exporter(), make_estimator()
    ec.train_and_evaluate(estimator, training, ec.EvalSpec(eval_input, exporters=exporter))
    assert evaluated(estimator) == [20]
    assert exporter.calls == [(10, 10, False), (20, 20, True)]
