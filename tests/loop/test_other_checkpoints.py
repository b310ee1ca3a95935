"""Tests of checkpoints with other shapes or dtypes: every verb refuses them and names the difference (trap 31, fault
2).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec

X = np.ones((4, 3), np.float32)


def batches() -> Any:
    return iter([({"x": X}, X[:, 0])] * 2)


def estimator(path: Path, *, width: int = 3, dtype: str = "float32", layers: int = 1) -> ec.Estimator:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"][:, :width] @ ec.get_variable("w", (width,), dtype=dtype).astype(jnp.float32)
        for layer in range(1, layers):
            y = y + ec.get_variable(f"b_{layer}", ())
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1))

    config = ec.RunConfig(model_dir=str(path), save_checkpoints_steps=5, default_hooks=False)
    return ec.Estimator(model_fn, config=config)


OTHERS = {"a shape": {"width": 2}, "a dtype": {"dtype": "bfloat16"}, "a layer more": {"layers": 2}}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("verb", ["train", "evaluate", "predict"])
def test_another_model_in_a_new_process(tmp_path: Path, other: str, verb: str) -> None:
    estimator(tmp_path).train(batches, steps=1)
    changed = estimator(tmp_path, **OTHERS[other])
    act = {
        "train": lambda: changed.train(batches, steps=1),
        "evaluate": lambda: changed.evaluate(batches),
        "predict": lambda: next(changed.predict(batches)),
    }[verb]
    with pytest.raises(ec.EstimatorError, match="b_1" if other == "a layer more" else r"'?w'? .*float32\[3\]"):
        act()


@pytest.mark.parametrize("other", ["a shape", "a dtype"])
@pytest.mark.parametrize("verb", ["evaluate", "predict"])
def test_a_checkpoint_given_by_path_to_a_trained_estimator(tmp_path: Path, other: str, verb: str) -> None:
    path = estimator(tmp_path / "one").train(batches, steps=1).latest_checkpoint()
    trained = estimator(tmp_path / "other", **OTHERS[other]).train(batches, steps=1)
    act = {
        "evaluate": lambda: trained.evaluate(batches, checkpoint_path=path),
        "predict": lambda: next(trained.predict(batches, checkpoint_path=path)),
    }[verb]
    with pytest.raises(ec.EstimatorError, match=r"differs: +w "):
        act()
