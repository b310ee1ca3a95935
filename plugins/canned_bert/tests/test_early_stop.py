"""Tests of `StopWithoutImprovement`: when it stops, and that a repeated call trains no further."""

from pathlib import Path

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_canned_bert.early_stop import StopWithoutImprovement
from estimator_core.errors import ArgumentError


def model_fn(features, labels, mode):
    weight = ec.get_variable("weight", (), lambda key, shape, dtype: np.zeros(shape, dtype))
    loss = (weight - features["x"].mean()) ** 2
    return ec.EstimatorSpec(mode, predictions={"y": features["x"]}, loss=loss, train_op=optax.sgd(0.5))


def trained(model_dir, patience):
    """Trains with evaluations that become worse with every step."""
    config = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, save_checkpoints_steps=1)
    estimator = ec.Estimator(model_fn, config=config)
    hook = StopWithoutImprovement(estimator.eval_dir(), patience=patience, every_steps=1)

    def input_fn():
        return ({"x": np.ones(2, np.float32)} for _ in range(50))

    def other_input_fn():
        return [{"x": np.full(2, -1.0, np.float32)}]

    spec = ec.TrainSpec(input_fn, max_steps=20, hooks=[hook])
    ec.train_and_evaluate(estimator, spec, ec.EvalSpec(other_input_fn))
    return int(Path(estimator.latest_checkpoint()).name), estimator.stop_reason


def test_the_same_call_again_trains_no_further_and_more_patience_does(tmp_path):
    step, reason = trained(tmp_path, patience=3)
    assert (step, reason) == (4, "no better loss since step 1")
    assert trained(tmp_path, patience=3) == (step, reason)
    assert trained(tmp_path, patience=6) == (7, reason)


def test_numbers_of_steps_below_one_are_refused(tmp_path):
    with pytest.raises(
        ArgumentError, match=r"^StopWithoutImprovement: patience must be at least 1, and a whole number, given: 0"
    ):
        StopWithoutImprovement(tmp_path, patience=0, every_steps=1)
