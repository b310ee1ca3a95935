"""Tests of trap 8: metrics exclude the padding of a batch, a loss can, and a loss that does not is reported."""

from __future__ import annotations

import logging
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec

X = np.arange(1, 13, dtype=np.float32)


def model(aware: bool) -> Any:
    def model_fn(features: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        squares = (features["x"] - ec.get_variable("b", (), jax.nn.initializers.zeros)) ** 2
        weights = ec.example_weights() if aware else None
        loss = squares.mean() if weights is None else (squares * weights).sum() / jnp.maximum(weights.sum(), 1.0)
        metrics = {"mean": ec.metrics.mean(squares)}
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.01), eval_metric_ops=metrics)

    return model_fn


def batches(ragged: str) -> Any:
    return ec.inputs.numpy_input_fn({"x": X}, batch_size=8, num_epochs=1, shuffle=False, ragged=ragged)


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "counts padded rows" in record.getMessage()]


def test_a_loss_that_counts_padding_is_reported_once_a_mode(
    make_estimator: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "estimator_core")
    estimator = make_estimator(model(aware=False)).train(batches("pad"))
    estimator.evaluate(batches("pad"))
    estimator.evaluate(batches("pad"))
    assert ["'train'" in line for line in reports(caplog)] == [True, False]
    assert estimator.evaluate(batches("pad"))["mean"] == pytest.approx(estimator.evaluate(batches("exact"))["mean"])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_loss_that_knows_gives_what_the_true_shape_gives(
    make_estimator: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture, accumulate: int
) -> None:
    settings = {"accumulate_steps": accumulate, "eval_loss": "example_mean"}
    padded = make_estimator(model(aware=True), model_dir=tmp_path / "padded", **settings).train(batches("pad"))
    ragged = make_estimator(model(aware=True), model_dir=tmp_path / "ragged", eval_loss="example_mean").train(
        batches("exact")
    )
    assert float(padded.variables["b"]) == pytest.approx(float(ragged.variables["b"]), rel=1e-6)
    assert padded.evaluate(batches("pad")) == pytest.approx(ragged.evaluate(batches("exact")), rel=1e-6)
    assert reports(caplog) == []


def test_a_part_of_padding_alone_does_not_count_though_its_loss_is_none(make_estimator: Any, tmp_path: Any) -> None:
    def model_fn(features: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        rows = ec.sparse_lookup("table", features["id"], (3, 1))
        squares = (features["x"] - ec.get_variable("b", (), jax.nn.initializers.zeros) - rows[:, 0]) ** 2
        weights = ec.example_weights()
        assert weights is not None
        return ec.EstimatorSpec(mode, loss=(squares * weights).sum() / weights.sum(), train_op=optax.sgd(0.01))

    inputs = {"x": X[:11], "id": np.arange(11) % 3}  # four rows of padding are one micro-batch
    found: list[Any] = []
    for accumulate in (1, 2):
        source = ec.inputs.numpy_input_fn(inputs, batch_size=8, shuffle=False, ragged="pad")
        whole = make_estimator(model_fn, model_dir=tmp_path / str(accumulate), accumulate_steps=accumulate)
        found.append(whole.train(source).variables)
    for name, values in found[0].items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-5, atol=1e-7)


def test_an_input_that_marks_its_padding_needs_no_report(make_estimator: Any, caplog: pytest.LogCaptureFixture) -> None:
    features = {"x": X[:8], "is_real_example": np.array([1] * 5 + [0] * 3, np.int32)}
    estimator = make_estimator(model(aware=False)).train(lambda: iter([features]), steps=1)
    assert reports(caplog) == []
    mean = estimator.evaluate(lambda: iter([features]))["mean"]
    assert mean == pytest.approx(float(np.mean((X[:5] - estimator.variables["b"]) ** 2)), rel=1e-6)
