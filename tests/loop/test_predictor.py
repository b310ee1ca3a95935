"""Tests of `Estimator.predictor()`: every call is checked like the first, whatever the previous calls received."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._backends import Placement


def model_fn(features, labels, mode):
    scale = ec.get_variable("scale", (), initializer=lambda key, shape, dtype: jnp.full(shape, 3.0, dtype))
    total = sum(value.reshape(value.shape[0], -1).sum(axis=1) for value in features.values())
    return ec.EstimatorSpec(mode, predictions={"scaled": scale * total, **features})


class AddsOne:
    """A host transform."""

    name, version, files = "adds_one", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        return {name: value + 1 for name, value in batch.items()}


@pytest.fixture
def estimator(tmp_path: Path) -> ec.Estimator:
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1, allow_untrained=True))


def test_features_of_another_structure_dtype_and_size_than_before(estimator):
    predictor = estimator.predictor()
    calls = [
        {"x": np.ones((2, 3), np.float32)},
        {"x": np.ones((5, 3), np.float32)},
        {"x": np.ones((2, 4), np.int32)},
        {"x": np.ones((2, 3), np.float64), "y": np.ones(2, np.float32)},
        {"x": np.ones((2, 3), np.float32)},
    ]
    for features in calls:
        expected = 3.0 * sum(value.reshape(len(value), -1).sum(axis=1) for value in features.values())
        np.testing.assert_allclose(predictor(features)["scaled"], expected)


def test_answers_do_not_change_with_the_memory_that_was_given(estimator):
    predictor = estimator.predictor()
    given = np.zeros((16, 64), np.float32)
    answers = [predictor({"x": given})["x"] for _ in range(2)]
    given[:] = 7
    assert all((answer == 0).all() for answer in answers)


def test_input_that_is_refused_leaves_the_predictor_as_it_was(estimator):
    predictor = estimator.predictor()
    good = {"x": np.ones((1, 2), np.float32)}
    for bad in ({}, {"x": np.ones((2, 1)), "y": np.ones((3, 1))}, {"x": np.array([2**40])}):
        before = predictor(good)["scaled"]
        with pytest.raises(ec.errors.InputError):
            predictor(bad)
        np.testing.assert_array_equal(predictor(good)["scaled"], before)


def test_threads_get_their_own_answers(estimator):
    predictor = estimator.predictor()
    values = [float(value) for value in range(200)]
    with ThreadPoolExecutor(4) as pool:
        shapes = [(1 + index % 3, 1 + index % 2) for index in range(len(values))]
        answers = pool.map(lambda value, shape: predictor({"x": np.full(shape, value)}), values, shapes)
        for value, (rows, columns), answer in zip(values, shapes, answers, strict=True):
            np.testing.assert_allclose(answer["scaled"], np.full(rows, 3.0 * value * columns))


def test_host_transforms_see_every_call(tmp_path):
    estimator = ec.Estimator(
        model_fn,
        config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1, allow_untrained=True),
        host_transforms=[AddsOne()],
    )
    predictor = estimator.predictor()
    for value in (0.0, 1.0, 2.0):
        answer = predictor({"x": np.full((1, 1), value, np.float32)})
        np.testing.assert_allclose(answer["scaled"], [3.0 * (value + 1)])


def test_a_call_like_an_earlier_one_needs_no_context_and_compiles_nothing(estimator, monkeypatch):
    predictor, entered, compiled = estimator.predictor(), [], []
    of_placement = Placement.context

    def context(self):
        entered.append(self)
        return of_placement(self)

    predictor({"x": np.ones((2, 3), np.float32)})
    predictor({"x": np.ones((1, 3), np.float32)})
    monkeypatch.setattr(Placement, "context", context)

    def listen(event, *_, **__):
        compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for value, rows in ((1, 2), (2, 1), (3, 2)):
            answer = predictor({"x": np.full((rows, 3), value, np.float32)})
            np.testing.assert_allclose(answer["scaled"], np.full(rows, 9.0 * value))
        assert not entered
        assert not [event for event in compiled if "compile" in event]
        predictor({"x": np.ones((3, 3), np.float32)})  # a new shape
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert len(entered) == 1
    assert len([event for event in compiled if "backend_compile" in event]) == 1


def test_refreshed_it_takes_the_newest_state(tmp_path):
    def moving(features, labels, mode):
        scale = ec.get_variable("scale", ())
        loss = None if labels is None else jnp.mean((scale - labels) ** 2)
        return ec.EstimatorSpec(mode, predictions=scale * features["x"], loss=loss, train_op=optax.sgd(0.1))

    estimator = ec.Estimator(moving, config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1))
    train = ec.inputs.numpy_input_fn(
        {"x": np.ones(8, np.float32)}, np.ones(8, np.float32), batch_size=4, num_epochs=None, shuffle=True
    )
    one = {"x": np.ones((1,), np.float32)}
    estimator.train(train, steps=1)
    predictor = estimator.predictor()
    before = [predictor(one) for _ in range(2)]
    estimator.train(train, steps=1)
    assert predictor(one) == before[0] == before[1]
    predictor.refresh()
    assert predictor(one) == estimator.get_variable_value("scale") != before[0]


def test_values_that_are_not_finite_are_found_once_jax_is_asked_to(estimator):
    predictor, bad = estimator.predictor(), {"x": np.full((1, 2), np.nan, np.float32)}
    assert all(np.isnan(predictor(bad)["scaled"]).all() for _ in range(2))
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        predictor(bad)
    assert np.isnan(predictor(bad)["scaled"]).all()
