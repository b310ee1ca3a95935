"""Tests of checkpoints with other shapes or dtypes: every verb refuses them and names the difference (trap 31, fault
2).
"""

from __future__ import annotations

import shutil
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

    config = ec.RunConfig(model_dir=str(path), save_checkpoints_steps=5, default_hooks=False, tf_random_seed=1)
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


def held_out() -> Any:
    return iter([({"x": X}, X[:, 0])])


def of_ones() -> Any:
    return iter([({"x": X}, np.ones(4, np.float32))] * 2)


def of_minus_nines() -> Any:
    return iter([({"x": X}, np.full(4, -9, np.float32))] * 2)


EXPORT = pytest.param("export", marks=pytest.mark.plugins)


@pytest.mark.parametrize("verb", ["evaluate", "predict", EXPORT, "train", "variables"])
@pytest.mark.parametrize("has_trained", [True, False])
def test_a_model_dir_that_was_trained_anew_to_the_same_step_is_read_anew(
    tmp_path: Path, verb: str, has_trained: bool
) -> None:
    """Only the steps were compared, so an Estimator that had been there before used its own weights."""
    first = estimator(tmp_path / "run").train(of_ones, max_steps=2)
    if not has_trained:
        first = estimator(tmp_path / "run")
        first.evaluate(held_out)
    old = first.get_variable_value("w")
    shutil.rmtree(tmp_path / "run")
    second = estimator(tmp_path / "run").train(of_minus_nines, max_steps=2)
    expected = second.get_variable_value("w")
    assert np.abs(expected - old).max() > 1

    def exported() -> Any:
        receiver_fn = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None, 3))})
        path = first.export_saved_model(str(tmp_path / "export"), receiver_fn)
        return ec.export.load(path).signatures["serving_default"](x=X)["y"]

    if verb == "variables":
        np.testing.assert_array_equal(first.get_variable_value("w"), expected)
    elif verb == "evaluate":
        assert first.evaluate(held_out)["loss"] == second.evaluate(held_out)["loss"]
    elif verb == "train":
        again = estimator(tmp_path / "run")
        first.train(of_minus_nines, max_steps=3)
        assert again.get_variable_value("w").tobytes() == first.get_variable_value("w").tobytes()
        assert (expected - again.get_variable_value("w")).min() > 0, "the third step follows the two of the second run"
    else:
        found = exported() if verb == "export" else next(first.predict(held_out, yield_single_examples=False))["y"]
        np.testing.assert_allclose(found, X @ expected, rtol=1e-6)


def test_a_model_dir_that_was_removed_is_trained_from_the_beginning(tmp_path: Path) -> None:
    """`train(max_steps=2)` did nothing, and `max_steps=3` trained one step of a model that no longer existed."""
    trained = estimator(tmp_path / "run").train(of_ones, max_steps=2)
    weights = trained.get_variable_value("w")
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(ec.errors.CheckpointNotFoundError, match="Could not find trained model"):
        trained.evaluate(held_out)
    trained.train(of_minus_nines, max_steps=2)
    anew = estimator(tmp_path / "anew").train(of_minus_nines, max_steps=2)
    assert ec.latest_checkpoint(str(tmp_path / "run")) == str(tmp_path / "run" / "checkpoints" / "2")
    np.testing.assert_array_equal(trained.get_variable_value("w"), anew.get_variable_value("w"))
    assert np.abs(trained.get_variable_value("w") - weights).max() > 1
