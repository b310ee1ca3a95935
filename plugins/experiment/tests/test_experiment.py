"""Tests of Experiment and its schedules: what is trained, evaluated and exported, and when."""

from __future__ import annotations

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


def experiment(make: Any, train_input: Any, eval_input: Any, **changes: Any) -> ec.Experiment:
    settings = {"train_steps": 20, "eval_delay_secs": 0, **changes}
    return ec.Experiment(make(), train_input, eval_input, **settings)


def test_experiment_schedules(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    exporter = Exporter()
    plan = experiment(make_estimator, train_input, eval_input, min_eval_frequency=5, export_strategies=exporter)
    metrics, exports = plan.train_and_evaluate()
    assert evaluated(plan.estimator) == [5, 10, 15, 20]
    assert exporter.calls == [(10, 10, False), (20, 20, True)]
    assert plan.evaluate()["loss"] == metrics["loss"]
    assert plan.continuous_eval()["loss"] == metrics["loss"]
    assert (exports[0], plan.estimator.eval_dir("one_pass").endswith("eval_one_pass")) == (
        f"{plan.estimator.model_dir}/export/e/2",
        True,
    )


def test_experiment_trains_and_evaluates_in_turns(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    plan = experiment(make_estimator, train_input, eval_input, train_steps_per_iteration=8)
    results, _ = plan.continuous_train_and_eval()
    assert evaluated(plan.estimator) == [8, 16, 20]
    assert results["global_step"] == 20


def test_experiment_test_makes_one_step(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    exporter = Exporter()
    results, exports = experiment(make_estimator, train_input, eval_input, export_strategies=[exporter]).test()
    assert results["global_step"] == 1
    assert exporter.calls == [(1, 1, True)]
    assert len(exports) == 1


def test_learn_runner(make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Any) -> None:
    def experiment_fn(run_config: Any, hparams: Any) -> Any:
        config = run_config.replace(save_checkpoints_steps=5, default_hooks=False)
        estimator = ec.Estimator(make_estimator(model_dir=tmp_path / "x").model_fn, config=config)
        return ec.Experiment(estimator, train_input, eval_input, train_steps=hparams.train_steps, eval_delay_secs=0)

    hparams = ec.HParams(train_steps=10)
    metrics, _ = ec.learn_runner.run(
        experiment_fn, run_config=ec.RunConfig(model_dir=str(tmp_path / "run")), hparams=hparams
    )
    assert metrics["global_step"] == 10
    with pytest.raises(ec.EstimatorError, match="non-existent task 'fly'"):
        ec.learn_runner.run(
            experiment_fn, run_config=ec.RunConfig(model_dir=str(tmp_path / "run")), schedule="fly", hparams=hparams
        )
    with pytest.raises(ec.EstimatorError, match="Exactly one of"):
        ec.learn_runner.run(experiment_fn, hparams=hparams)
    with pytest.raises(ec.EstimatorError, match="Must specify a model directory"):
        ec.learn_runner.run(experiment_fn, run_config=ec.RunConfig(), hparams=hparams)


def test_continuous_eval_passes_over_a_checkpoint_that_the_trainer_deletes(
    make_estimator: Any, train_input: Any, eval_input: Any, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = make_estimator(keep_checkpoint_max=1).train(train_input, steps=3)

    def slow_input() -> Any:
        if trainer.latest_checkpoint().endswith("/3"):
            trainer.train(train_input, steps=3)
        return eval_input()

    plan = experiment(make_estimator, train_input, slow_input, train_steps=6, continuous_eval_throttle_secs=0)
    assert plan.continuous_eval()["global_step"] == 6
    assert sum("was deleted before it was evaluated" in one for one in caplog.messages) == 1
