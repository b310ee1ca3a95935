"""Tests of small features that reach the training program in one matrix, without a visible difference."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._loop import train_run
from estimator_core._step import train_step
from estimator_core._step.joined_features import Gathered, apart, gathering

NUMBERS = [f"c{index}" for index in range(6)]
X: dict[str, Any] = {
    **{name: np.random.default_rng(place).normal(size=40) for place, name in enumerate(NUMBERS)},
    **{f"k{index}": np.random.default_rng(index).integers(0, 9, 40) for index in range(5)},
    "wide": np.random.default_rng(9).normal(size=(40, 3)),
    "flag": np.arange(40) % 2 == 0,
}
Y = np.asarray(X["c0"] + X["c1"] * X["k2"])


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Columns in the order of the features, an embedding of each integer, a wide feature and a flag."""
    assert list(features) == sorted(features), "as jax orders them, since models stack what they iterate over"
    rows = [value for name, value in features.items() if name.startswith("c")]
    found = [features["wide"], jnp.stack(rows, axis=1), features["flag"][:, None] * 1.0]
    for name in sorted(features):
        if name.startswith("k"):
            found.append(ec.get_variable(name, (9, 4), jax.nn.initializers.normal(0.1))[features[name]])
    x = jnp.concatenate(found, axis=1)
    hidden = jax.nn.relu(x @ ec.get_variable("w", (x.shape[1], 32), jax.nn.initializers.normal(0.1)))
    logits = (hidden @ ec.get_variable("out", (32, 1), jax.nn.initializers.normal(0.1)))[:, 0]
    return ec.EstimatorSpec(mode, loss=jnp.mean((logits - labels) ** 2), train_op=optax.adam(0.01))


def trained(model_dir: Any, **config: Any) -> dict[str, np.ndarray]:
    """Trains for two epochs, whose last batch is short, and then in another call."""
    settings = ec.RunConfig(model_dir=str(model_dir), tf_random_seed=1, default_hooks=False, **config)
    estimator = ec.Estimator(model_fn, config=settings)
    source = ec.inputs.numpy_input_fn(X, Y, batch_size=16, num_epochs=3, shuffle=True, seed=1)
    estimator.train(source, steps=5).train(source)
    return {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}


@pytest.mark.parametrize("config", [pytest.param({}, marks=pytest.mark.slow), {"steps_per_dispatch": 2}])
def test_training_has_the_bits_of_separate_columns(config: Any, tmp_path: Any, monkeypatch: Any) -> None:
    together = trained(tmp_path / "together", **config)
    monkeypatch.setattr(train_step, "gathering", lambda features: None)
    separate = trained(tmp_path / "separate", **config)
    assert together.keys() == separate.keys()
    for name, value in together.items():
        np.testing.assert_array_equal(value, separate[name], err_msg=name)


def test_a_step_takes_two_matrices_in_place_of_eleven_columns(tmp_path: Any, monkeypatch: Any) -> None:
    handed: list[Any] = []
    found = train_step.TrainStep.gathered

    def noted(self: Any, features: Any) -> Any:
        handed.append(found(self, features))
        return handed[-1]

    monkeypatch.setattr(train_step.TrainStep, "gathered", noted)
    trained(tmp_path)
    assert isinstance(handed[0], Gathered)
    assert sorted(handed[0].rest) == ["flag", "wide"]
    assert [matrix.shape for matrix in handed[0].matrices.values()] == [(16, 6), (16, 5)]


def test_hooks_see_the_features_by_name(tmp_path: Any) -> None:
    seen: list[Any] = []

    class Look(ec.Hook):
        def after_step(self, run: Any, step: Any, out: Any) -> None:
            seen.append(run.batch.features)

    estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1))
    estimator.train(ec.inputs.numpy_input_fn(X, Y, batch_size=16, shuffle=False), hooks=[Look()])
    np.testing.assert_array_equal(seen[-1]["c3"], X["c3"][32:].astype(np.float32))


def test_what_is_gathered_is_a_new_matrix_in_the_order_of_rows() -> None:
    batch = {name: np.arange(3, dtype=np.float32) for name in NUMBERS}
    gather = gathering(batch)
    assert gather is not None
    (matrix,) = gather(batch).matrices.values()
    batch["c0"][:] = 7  # the owner may write again; the device may read later
    assert matrix.flags.c_contiguous
    assert matrix[:, 0].tolist() == [0, 1, 2]
    assert list(apart(gather(batch))) == NUMBERS


@pytest.mark.parametrize("batch", [np.zeros((4, 9)), {f"c{n}": np.zeros(3) for n in range(3)}, {"x": np.zeros((4, 9))}])
def test_few_columns_and_matrices_stay_as_they_are(batch: Any) -> None:
    assert gathering(batch) is None
    assert apart(batch) is batch


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 2)])
def test_features_of_more_axes_are_taken_apart_as_they_were(shape: Any) -> None:
    values = np.random.default_rng(0).normal(size=(6, 5, *shape)).astype(np.float32)
    batch = dict(zip(NUMBERS, values, strict=True))
    gather = gathering(batch)
    assert gather is not None
    found = apart(gather(batch))
    assert list(found) == NUMBERS
    for name, value in batch.items():
        np.testing.assert_array_equal(found[name], value)
    assert [matrix.shape for matrix in gather(batch).matrices.values()] == [(5, 6, *shape)]


def concatenating(features: Any, labels: Any, mode: str) -> Any:
    """Concatenates columns [rows, 1] and embeddings, as an `input_layer` does."""
    x = jnp.concatenate([value.reshape(value.shape[0], -1) for value in features.values()], axis=1)
    logits = (x @ ec.get_variable("w", (x.shape[1], 1), jax.nn.initializers.normal(0.1)))[:, 0]
    return ec.EstimatorSpec(mode, loss=jnp.mean((logits - labels) ** 2), train_op=optax.adam(0.01))


def test_training_has_the_bits_of_separate_features_of_more_axes(tmp_path: Any, monkeypatch: Any) -> None:
    x: dict[str, Any] = {f"one{n}": np.random.default_rng(n).normal(size=(40, 1)) for n in range(6)}
    x |= {f"few{n}": np.random.default_rng(n).normal(size=(40, 3)) for n in range(4)}
    found: dict[str, Any] = {}
    for name in ("together", "separate"):
        if name == "separate":
            monkeypatch.setattr(train_step, "gathering", lambda features: None)
        config = ec.RunConfig(model_dir=str(tmp_path / name), tf_random_seed=1)
        estimator = ec.Estimator(concatenating, config=config)
        estimator.train(ec.inputs.numpy_input_fn(x, Y, batch_size=16, num_epochs=3, shuffle=True, seed=1))
        found[name] = estimator.get_variable_value("w")
    np.testing.assert_array_equal(found["together"], found["separate"])


class Lengths:
    """Four features whose lengths are equal only in the first batch."""

    input_options = ec.inputs.InputOptions(varying_shapes=True)

    def __iter__(self) -> Any:
        for lengths in ((4, 4, 4, 4), (3, 5, 4, 4), (5, 5, 5, 5), (2, 6, 7, 9)):
            features = {f"c{n}": np.full((4, length), n + 1, np.float32) for n, length in enumerate(lengths)}
            yield features, np.ones(4, np.float32)


def test_features_that_later_differ_in_length_travel_alone(tmp_path: Any, monkeypatch: Any) -> None:
    def sums(features: Any, labels: Any, mode: str) -> Any:
        weight = ec.get_variable("w", (), jax.nn.initializers.zeros)
        loss = sum(jnp.mean((value.mean(axis=1) * weight - labels) ** 2) for value in features.values())
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.01))

    together = ec.Estimator(sums, config=ec.RunConfig(model_dir=str(tmp_path / "together")))
    together.train(lambda: Lengths())
    monkeypatch.setattr(train_step, "gathering", lambda features: None)
    separate = ec.Estimator(sums, config=ec.RunConfig(model_dir=str(tmp_path / "separate")))
    separate.train(lambda: Lengths())
    assert together.get_variable_value("w") == separate.get_variable_value("w") != 0


def test_long_columns_stay_as_they_are() -> None:
    assert gathering({name: np.zeros(1025, np.float32) for name in NUMBERS}) is None


@pytest.mark.slow
def test_debug_mode_takes_the_batch_as_it_is(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(train_step, "gathering", lambda features: pytest.fail("debug mode shows the user's arrays"))
    monkeypatch.setattr(train_run, "_compiled", lambda step, first: pytest.fail("debug mode compiles nothing"))
    trained(tmp_path, debug=True)
