"""Tests of the roles in a cluster of TF_CONFIG if no schedule is named."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core.train_eval import new_checkpoints
from estimator_experiment.learn_runner import run, schedule_of

CLUSTER = {"chief": ["127.0.0.1:7001"]}
PROGRAM = """
import json, sys
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

x = np.arange(32, dtype=np.float32).reshape(16, 2)

def model_fn(features, labels, mode):
    loss = jnp.mean((features["x"] @ ec.get_variable("w", (2,)) - labels) ** 2)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(1e-4))

def experiment_fn(run_config, hparams):
    def data(epochs):
        return ec.inputs.numpy_input_fn({"x": x}, x.sum(1), batch_size=4, shuffle=False, num_epochs=epochs)
    estimator = ec.Estimator(model_fn, config=run_config)
    return ec.Experiment(estimator, data(None), data(1), train_steps=6, eval_delay_secs=0,
                         continuous_eval_throttle_secs=0)

config = ec.RunConfig(model_dir=sys.argv[1], save_checkpoints_steps=3, tf_random_seed=1, default_hooks=False)
result = ec.learn_runner.run(experiment_fn, run_config=config)
metrics = result[0] if isinstance(result, tuple) else result
print(json.dumps(None if metrics is None else metrics["global_step"]))
"""


def role(kind: str, cluster: Any = CLUSTER) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})


def test_a_chief_alone_leaves_evaluations_to_the_evaluator(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def experiment_fn(run_config: Any, hparams: Any) -> Any:
        estimator = ec.Estimator(make_estimator(model_dir=tmp_path / "x").model_fn, config=run_config)
        return ec.Experiment(
            estimator, train_input, eval_input, train_steps=6, eval_delay_secs=0, continuous_eval_throttle_secs=0
        )

    def config() -> ec.RunConfig:
        return ec.RunConfig(model_dir=str(tmp_path / "run"), save_checkpoints_steps=3, default_hooks=False)

    monkeypatch.setenv("TF_CONFIG", role("chief"))
    assert run(experiment_fn, run_config=config()) == (None, [])
    estimator = experiment_fn(config(), None).estimator
    train_spec, eval_spec = ec.TrainSpec(train_input, max_steps=9), ec.EvalSpec(eval_input, name="continuous")
    assert ec.train_and_evaluate(estimator, train_spec, eval_spec) == (None, [])
    assert ec.read_eval_metrics(estimator.eval_dir("continuous")) == {}

    monkeypatch.setenv("TF_CONFIG", role("evaluator"))
    metrics = run(experiment_fn, run_config=config())
    again, exports = run(experiment_fn, run_config=config(), schedule="train_and_evaluate")
    assert (metrics["global_step"], again["global_step"], exports) == (9, 9, [])


def test_the_evaluator_ends_with_a_training_that_ends_before_its_last_step(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []

    class Exporter:
        name = "e"

        def export(self, estimator: Any, path: str, checkpoint: str, result: Any, is_final: bool) -> None:
            asked.append((result["global_step"], is_final))

    def waits(seconds: float) -> None:
        raise AssertionError("the evaluator waits for a step that never comes")

    config = ec.RunConfig(model_dir=str(tmp_path / "run"), save_checkpoints_steps=3, default_hooks=False)
    estimator = ec.Estimator(make_estimator(model_dir=tmp_path / "x").model_fn, config=config)
    estimator.train(train_input, steps=6)  # as an early stop would
    monkeypatch.setattr("estimator_core._continuous_eval._START_SECS", -1.0)
    watched = functools.partial(new_checkpoints, sleep=waits)
    monkeypatch.setattr("estimator_experiment.experiment.new_checkpoints", watched)
    monkeypatch.setenv("TF_CONFIG", role("evaluator"))
    plan = ec.Experiment(
        ec.Estimator(estimator.model_fn, config=config.replace()),
        train_input,
        eval_input,
        train_steps=100,
        eval_delay_secs=0,
        continuous_eval_throttle_secs=0,
        export_strategies=Exporter(),
    )
    metrics, _ = plan.train_and_evaluate()
    assert metrics is not None
    assert metrics["global_step"] == 6
    assert asked == [(6, False), (6, True)]


def test_processes_that_train_together_have_one_default(
    make_estimator: Any, train_input: Any, eval_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ec.Experiment(make_estimator(), train_input, eval_input, train_steps=1)
    chosen = []
    monkeypatch.setattr(
        "estimator_experiment.learn_runner.schedule_of",
        lambda experiment, name: (chosen.append(name), schedule_of(plan, "test"))[1],
    )
    for kind in ("master", "worker"):
        monkeypatch.setenv("TF_CONFIG", role(kind, {"master": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}))
        config = ec.RunConfig(model_dir=plan.estimator.model_dir, processes=None)
        run(lambda run_config, hparams: plan, run_config=config)
    assert chosen == ["train_and_evaluate", "train_and_evaluate"]


@pytest.mark.slow
@pytest.mark.plugins  # estimator-cluster
@pytest.mark.parametrize(
    ("roles", "said"),
    [(("chief", "worker", "evaluator"), [None, None, 6]), (("master", "worker"), [6, 6])],
)
def test_chief_worker_and_evaluator_end_without_a_schedule(
    roles: tuple[str, ...], said: list[int | None], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    cluster = {roles[0]: [f"127.0.0.1:{port}"], "worker": ["127.0.0.1:1"]}
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    children = [
        subprocess.Popen(
            [sys.executable, str(program), str(tmp_path / "run")],
            env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CONFIG": role(kind, cluster)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind in roles
    ]
    outputs = [child.communicate(timeout=200) for child in children]
    assert [child.returncode for child in children] == [0] * len(roles), outputs
    assert [json.loads(stdout.splitlines()[-1]) for stdout, _ in outputs] == said
