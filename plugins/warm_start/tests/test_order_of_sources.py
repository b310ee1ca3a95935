"""Tests of initial values in real runs: their sources, and when they no longer count (traps 15 and 32)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec

X = np.ones((4, 2), np.float32)
NORMAL = jax.nn.initializers.normal()


def batches() -> Any:
    return iter([({"x": X}, X[:, 0])] * 3)


class FirstValues(ec.Hook):
    """Records the variables before the first step."""

    def after_create(self, run: Any) -> None:
        self.found = {name: value.tolist() for name, value in run.variables().items()}


def model(source: str | None = None, scaffold: Any = None) -> Any:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"] @ ec.get_variable("w", (2,), NORMAL) + ec.get_variable("b", (), NORMAL)
        if source is not None:
            ec.init_from_checkpoint(source, {"b": "b"})
        loss = jnp.mean((y - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0), scaffold=scaffold)

    return model_fn


def estimator(path: Path, model_fn: Any, seed: int = 1, **arguments: Any) -> ec.Estimator:
    config = ec.RunConfig(model_dir=str(path), tf_random_seed=seed, save_checkpoints_steps=10, default_hooks=False)
    return ec.Estimator(model_fn, config=config, **arguments)


def first_values(trained: ec.Estimator) -> dict[str, Any]:
    hook = FirstValues()
    trained.train(batches, hooks=[hook], steps=1)
    return hook.found


@pytest.fixture
def sources(tmp_path: Path) -> list[ec.Estimator]:
    """Two trained models with different values."""
    return [estimator(tmp_path / str(seed), model(), seed).train(batches, steps=1) for seed in (7, 8)]


def test_each_source_wins_over_the_one_before_and_a_checkpoint_over_all(
    tmp_path: Path, sources: list[ec.Estimator]
) -> None:
    warm, init = sources
    plain = first_values(estimator(tmp_path / "plain", model()))
    warmed = first_values(estimator(tmp_path / "warm", model(), warm_start_from=warm.model_dir))
    assert warmed == {name: warm.variables[name].tolist() for name in ("w", "b")}
    assert warmed != plain
    both = estimator(tmp_path / "both", model(init.model_dir), warm_start_from=warm.model_dir)
    assert first_values(both) == {"w": warmed["w"], "b": init.variables["b"].tolist()}

    def init_fn(values: dict[str, Any]) -> dict[str, Any]:
        assert values["b"].tolist() == init.variables["b"].tolist()
        return {"b": np.float32(5.0)}

    all_of_them = model(init.model_dir, ec.Scaffold(init_fn=init_fn))
    trained = estimator(tmp_path / "all", all_of_them, warm_start_from=warm.model_dir)
    assert first_values(trained) == {"w": warmed["w"], "b": 5.0}
    resumed = estimator(tmp_path / "warm", all_of_them, warm_start_from=warm.model_dir)
    assert first_values(resumed) == warmed  # nothing is initialised if a checkpoint exists


def test_the_step_is_not_taken_over(tmp_path: Path, sources: list[ec.Estimator]) -> None:
    warmed = estimator(tmp_path / "warm", model(), warm_start_from=sources[0].model_dir)
    assert warmed.evaluate(batches)["global_step"] == 0  # an evaluation needs only a warm start


def test_the_log_tells_what_was_loaded_and_what_was_not(
    tmp_path: Path, sources: list[ec.Estimator], caplog: pytest.LogCaptureFixture
) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"] @ ec.get_variable("w", (2,)) + ec.get_variable("new", ())
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.0))

    old = sources[0].model_dir
    caplog.set_level("INFO", logger="estimator_core")
    estimator(tmp_path / "log", model_fn, warm_start_from=old).train(batches, steps=1)
    (table,) = (one.getMessage() for one in caplog.records if one.name == "estimator_core.warm_start")
    assert [" ".join(line.split()) for line in table.splitlines()] == [
        f"Warm start from {old}:",
        "variable shape loaded from remark",
        f"w [2] yes w of {old}",
        f"new [] no initializer not in {old}",
    ]


def test_a_path_is_looked_up_with_the_plugins_of_the_estimator(tmp_path: Path) -> None:
    with pytest.raises(ec.errors.PluginLookupError, match="is blocked"):
        estimator(
            tmp_path / "a", model(), warm_start_from="runs/old", plugins=ec.Plugins(block=["estimator-warm-start"])
        )
