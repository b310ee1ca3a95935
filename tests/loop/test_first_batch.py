"""Tests of `Estimator.first_batch`: it returns the batch that training would draw first, without side effects."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import HookError


def test_hooks_begin_before_the_first_batch_is_drawn(make_estimator: Any) -> None:
    arrays: dict[str, Any] = {}

    class Load(ec.Hook):
        def begin(self, run: Any) -> None:
            assert run.mode == ec.ModeKeys.TRAIN
            arrays["x"] = np.zeros((6, 2), np.float32)

    def input_fn() -> Any:
        return ({"x": arrays["x"]} for _ in range(1))

    batch = make_estimator().first_batch(input_fn, [Load(), ec.Hook()])
    assert batch.features["x"].shape == (6, 2)


def test_it_is_the_batch_that_training_draws(make_estimator: Any, train_input: Any) -> None:
    """Transforms of the estimator run first, then those that hooks declare."""

    class Twice:
        name, version = "twice", 1

        def config(self) -> dict[str, Any]:
            return {}

        @property
        def files(self) -> dict[str, Any]:
            return {}

        def apply(self, batch: Any) -> Any:
            return {"x": 2 * batch["x"]}

    class AddOne(ec.Hook):
        def begin(self, run: Any) -> None:
            run.transform_batches(lambda features, labels: ({"x": features["x"] + 1}, labels))

    class FirstBatch(ec.Hook):
        def after_create(self, run: Any) -> None:
            self.features = run.batch.features

    plain = make_estimator().first_batch(train_input)
    seen = FirstBatch()
    estimator = ec.Estimator(
        make_estimator().model_fn,
        config=make_estimator().config,
        host_transforms=[Twice()],
    )
    early = estimator.first_batch(train_input, [AddOne()])
    np.testing.assert_array_equal(early.features["x"], 2 * plain.features["x"] + 1)
    estimator.train(train_input, steps=1, hooks=[AddOne(), seen])
    np.testing.assert_array_equal(early.features["x"], np.asarray(seen.features["x"]))


def test_an_empty_input_has_none(make_estimator: Any) -> None:
    assert make_estimator().first_batch(lambda: iter(())) is None


def test_nothing_is_trained_or_written(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator()
    estimator.first_batch(train_input)
    assert not Path(estimator.model_dir).exists()
    assert estimator.trace_counts == {}


def test_the_input_is_closed(make_estimator: Any) -> None:
    closed: list[bool] = []

    def batches() -> Any:
        try:
            while True:
                yield {"x": np.zeros((2, 3), np.float32)}
        finally:
            closed.append(True)

    make_estimator().first_batch(batches)
    assert closed == [True]


def test_what_cannot_be_used_is_refused(make_estimator: Any, train_input: Any) -> None:
    with pytest.raises(ec.EstimatorError, match="`input_fn` must be callable"):
        make_estimator().first_batch([1, 2])
    with pytest.raises(ec.EstimatorError, match=r"must be ec\.Hook instances"):
        make_estimator().first_batch(train_input, hooks=[object()])


def test_a_hook_of_the_spec_comes_too_late_to_change_batches(make_estimator: Any, train_input: Any) -> None:
    """It begins after the first batch is drawn. Otherwise only later batches, or none, would be silently changed."""

    class AddOne(ec.Hook):
        def begin(self, run: Any) -> None:
            run.transform_batches(lambda features, labels: ({"x": features["x"] + 1}, labels))

    inner = make_estimator().model_fn

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return dataclasses.replace(inner(features, labels, mode, config), training_hooks=[AddOne()])

    estimator = ec.Estimator(model_fn, config=make_estimator().config)
    with pytest.raises(HookError, match="transform_batches must be called in `begin`, by a hook of the call"):
        estimator.train(train_input, steps=2)
