"""`add_metrics` extends an evaluation and leaves everything else as it was (fault 20)."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.testing import tiny_estimator


class Doubled(ec.inputs.HostTransform):
    """Doubles the labels."""

    name, version = "doubled", "1"

    def config(self) -> dict[str, Any]:
        return {}

    def apply(self, batch: Any) -> Any:
        return {name: 2 * value for name, value in batch.items()}


def label_mean(labels: Any) -> dict[str, Any]:
    return {"label_mean": ec.metrics.mean(labels)}


def batches(params: Any = None) -> Any:
    x = np.linspace(0, 1, 8, dtype=np.float32)[:, None]
    return iter([({"x": x}, np.full(8, 1.0 if params is None else params["label"], np.float32))])


def test_what_the_estimator_was_given_stays(tmp_path: Any) -> None:
    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        assert params == {"label": 3.0}
        return tiny_estimator(tmp_path).model_fn(features, labels, mode)

    config = ec.RunConfig(model_dir=str(tmp_path), default_hooks=False)
    estimator = ec.Estimator(model_fn, config=config, params={"label": 3.0}, label_transforms=[Doubled()])
    more = ec.add_metrics(estimator.train(batches, steps=1), label_mean)
    assert more.params == {"label": 3.0}
    assert more.evaluate(batches)["label_mean"] == 6.0  # input_fn received params, and labels were transformed


def test_a_metric_that_is_replaced_is_named(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "estimator_core")
    estimator = tiny_estimator(tmp_path, default_hooks=False).train(batches, steps=1)
    ec.add_metrics(estimator, label_mean).evaluate(batches)
    assert "add_metrics: " not in caplog.text
    replacing = ec.add_metrics(estimator, lambda labels: {"average_loss": ec.metrics.mean(labels)})
    assert replacing.evaluate(batches)["average_loss"] == 1.0
    assert "the metrics ['average_loss'] of metric_fn replace" in caplog.text


def test_metrics_are_added_and_the_estimator_is_not_changed(tmp_path: Any) -> None:
    estimator = tiny_estimator(tmp_path, default_hooks=False).train(batches, steps=2)
    more = ec.add_metrics(
        estimator,
        lambda labels, predictions: {
            "label_mean": ec.metrics.mean(labels),
            "average_loss": ec.metrics.mean(0 * labels),
        },
    )
    metrics = more.evaluate(batches)
    assert metrics["average_loss"] == 0.0  # the new metric replaces the old one
    assert metrics["label_mean"] == 1.0
    assert "label_mean" not in estimator.evaluate(batches)
    with pytest.raises(ec.EstimatorError, match="not expected args: \\['foo'\\]"):
        ec.add_metrics(estimator, lambda foo: {})
