"""Tests of divergence: it is detected, named and never saved, and debug mode names the first bad value."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import NanLossDuringTrainingError


def test_a_bad_loss_stops_with_its_step_and_is_not_saved(
    make_estimator: Any, train_input: Any, steps_saved: Any
) -> None:
    estimator = make_estimator(params={"poison_after": 10})  # fault 1: the save of step 10 must not happen
    with pytest.raises(NanLossDuringTrainingError) as raised:
        estimator.train(train_input, max_steps=30)
    assert raised.value.step == 10
    assert steps_saved(estimator) == [0]
    again = make_estimator(params={}).train
    with pytest.raises(ec.EstimatorError, match="seen"):
        again(train_input, max_steps=30)  # another model is refused, with the name of the variable that differs


@pytest.mark.parametrize("k", [1, 5])
def test_the_step_is_exact_between_looks(make_estimator: Any, train_input: Any, k: int) -> None:
    """The check detects the divergence. If the save of the last step did, its message would mention the missing
    checkpoint.
    """
    noticed = r"loss is not finite at step 37\. No checkpoint contains this state"
    with pytest.raises(NanLossDuringTrainingError, match=noticed) as raised:
        make_estimator(params={"poison_after": 37}, save_checkpoints_steps=1000, steps_per_dispatch=k).train(
            train_input, max_steps=300
        )
    assert raised.value.step == 37


def test_the_step_is_named_where_the_input_ends_before_anybody_looks(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator(params={"poison_after": 11}, save_checkpoints_steps=1000)
    with pytest.raises(NanLossDuringTrainingError, match=r"not finite at step 11\. Checkpoint 40 is not") as raised:
        estimator.train(lambda: itertools.islice(train_input(), 40))
    assert raised.value.step == 11


def test_a_loss_of_an_evaluation_that_is_nan_is_told(
    make_estimator: Any, train_input: Any, caplog: pytest.LogCaptureFixture
) -> None:
    estimator = make_estimator(params={}).train(train_input, max_steps=2)
    features, labels = next(iter(train_input()))
    estimator.evaluate(lambda: [(features, labels)])
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    estimator.evaluate(lambda: [(features, np.full_like(labels, np.nan))])
    assert "loss = nan at global step 2: a label, a feature or" in caplog.text


def test_debug_names_the_first_bad_value_and_shows_shapes(
    make_estimator: Any, train_input: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "estimator_core")
    with pytest.raises(NanLossDuringTrainingError, match=r"output 'loss'.*after step 3.* the model produced") as raised:
        make_estimator(params={"poison_after": 3}, debug=True, save_checkpoints_steps=None).train(train_input, steps=5)
    assert raised.value.step == 3
    assert "variables/w: float32[3]" in caplog.text


@pytest.mark.parametrize("where", ["labels", "features"])
def test_debug_names_what_came_with_the_batch(make_estimator: Any, train_input: Any, where: str) -> None:
    def poisoned() -> Any:
        for step, (features, labels) in enumerate(train_input()):
            if step == 2:
                labels = labels.copy()
                features = {name: value.copy() for name, value in features.items()}
                bad = labels if where == "labels" else next(iter(features.values()))
                bad[4] = np.nan
            yield features, labels

    with pytest.raises(NanLossDuringTrainingError, match=rf"In the batch of this step '{where}.* is nan at \[4"):
        make_estimator(params={}, debug=True, save_checkpoints_steps=None).train(poisoned, steps=5)


def test_debug_gives_the_same_weights(make_estimator: Any, train_input: Any, tmp_path: Any) -> None:
    plain = make_estimator(model_dir=tmp_path / "a").train(train_input, steps=3).variables
    slow = make_estimator(model_dir=tmp_path / "b", debug=True).train(train_input, steps=3).variables
    for name in plain:
        np.testing.assert_allclose(slow[name], plain[name], rtol=1e-5, atol=1e-6)
