"""Tests of Keras 3 models (traps 33 and 34)."""

import os
import random
import subprocess
import sys

import jax
import keras
import numpy as np
import pytest

from estimator_core._model.module import module, write_back
from estimator_core.errors import VariableError


def network():
    return keras.Sequential(
        [keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5), keras.layers.Dense(2)]
    )


def model(x):
    return module(network, name="net")(x)


VARIABLES = {f"net/{name}" for name in ("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias")} | {
    "net/batch_normalization/gamma",
    "net/batch_normalization/beta",
}
STATE = {
    "net/batch_normalization/moving_mean",
    "net/batch_normalization/moving_variance",
    "net/seed_generator/seed_generator_state",
}


def test_names_do_not_depend_on_what_was_made_before(runner, batch):
    for _ in range(2):
        run = runner(model).start(batch)
        assert set(run.variables) == VARIABLES
        assert set(run.model_state) == STATE
        run.step(batch)


def test_values_follow_the_seed_of_the_run_alone(runner, batch):
    first = runner(model, seed=1).start(batch)
    random.seed(99)
    network()
    second = runner(model, seed=1).start(batch)
    third = runner(model, seed=2).start(batch)
    kernel = "net/dense/kernel"
    np.testing.assert_array_equal(first.variables[kernel], second.variables[kernel])
    assert not np.array_equal(first.variables[kernel], third.variables[kernel])


def test_tracing_does_not_move_the_generator_of_python(runner, batch):
    random.seed(5)
    expected = random.Random(5).random()
    runner(model).start(batch).step(batch)
    assert random.random() == expected


def test_statistics_and_seeds_move_in_training_only(runner, batch):
    run = runner(model).start(batch)
    before = run.model_state
    train = [np.asarray(run.step(batch)) for _ in range(2)]
    assert not np.array_equal(*train)
    assert all(not np.array_equal(run.model_state[path], before[path]) for path in STATE)
    np.testing.assert_array_equal(run.step(batch, mode="eval"), run.step(batch, mode="eval"))


def test_an_instance_gives_first_values_and_never_changes(runner, batch):
    instance = network()
    instance.build((None, 3))
    before = [np.asarray(variable.value) for variable in instance.variables]
    run = runner(lambda x: module(instance, name="net")(x)).start(batch)
    np.testing.assert_array_equal(run.variables["net/dense/kernel"], before[0])
    run.step(batch)
    for variable, value in zip(instance.variables, before, strict=True):
        assert not isinstance(variable.value, jax.core.Tracer)
        np.testing.assert_array_equal(variable.value, value)


def test_functional_models_with_named_layers_and_losses(runner, batch):
    def factory():
        inputs = keras.Input((3,))
        hidden = keras.layers.Dense(4, name="hidden_7", kernel_regularizer=keras.regularizers.L2(0.1))(inputs)
        return keras.Model(inputs, keras.layers.Dense(1)(hidden))

    def with_loss(x):
        net = module(factory, name="net")
        return net(x), sum(net.losses)

    run = runner(with_loss).start(batch)
    assert set(run.variables) == {
        f"net/{name}" for name in ("hidden_7/kernel", "hidden_7/bias", "dense/kernel", "dense/bias")
    }
    _, loss = run.step(batch)
    np.testing.assert_allclose(loss, 0.1 * np.sum(np.square(run.variables["net/hidden_7/kernel"])), rtol=1e-5)


def test_values_are_written_back_into_an_instance(runner, batch):
    run = runner(model).start(batch)
    run.step(batch)
    values = {path: np.asarray(value) for path, value in {**run.variables, **run.model_state}.items()}
    instance = network()
    with pytest.raises(VariableError, match="is not built"):
        write_back(instance, values, name="net")
    instance.build((None, 3))
    write_back(instance, values, name="net")
    np.testing.assert_allclose(instance(batch, training=False), run.step(batch, mode="eval"), rtol=1e-5, atol=1e-6)


def test_another_backend_is_named_with_the_variable():
    program = """
import sys, types
fake = types.ModuleType("keras")
fake.Layer = type("Layer", (), {})
fake.backend = types.SimpleNamespace(backend=lambda: "torch")
sys.modules["keras"] = fake
import jax
from estimator_core.errors import VariableError
from estimator_core._model.module import module
from estimator_core._model.scope import declaring
def trace(x):
    with declaring({}, mode="train"):
        return module(fake.Layer(), name="net")(x)
try:
    jax.eval_shape(trace, 1.0)
except VariableError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert "runs on the backend 'torch'" in done.stdout
    assert "KERAS_BACKEND=jax before Keras is imported" in done.stdout


class Lazy(keras.Model):
    """A subclass without `build`. Its layers create their variables in the first call."""

    def __init__(self):
        super().__init__()
        self.rows = keras.layers.Embedding(3, 2)
        self.towers = [[keras.layers.Dense(2, "selu")] for _ in range(2)]
        self.norm = keras.layers.BatchNormalization(momentum=0.8)
        self.dropout = keras.layers.Dropout(0.5)

    def call(self, inputs, training=None, mask=None):
        total = self.rows(inputs["ids"])
        for tower in self.towers:
            net = inputs["x"]
            for layer in tower:
                net = self.dropout(layer(net), training=training)
            total = total + self.norm(net, training=training)
        return total


def lazy(make):
    def called(x):
        ids = (x[:, 0] > 0).astype("int32")
        return module(make, name="net")({"x": x, "ids": ids})

    return called


@pytest.mark.slow
def test_a_subclass_need_not_be_called_before(runner, batch):
    called = Lazy()
    called({"x": np.asarray(batch), "ids": np.zeros(len(batch), np.int32)})
    expected = runner(lazy(called)).start(batch)
    for make in (Lazy, Lazy()):
        run = runner(lazy(make), seed=1).start(batch)
        assert run.variables.keys() == expected.variables.keys()
        assert run.model_state.keys() == expected.model_state.keys()
        assert run.model_state["net/seed_generator/seed_generator_state"].dtype == np.uint32
        assert run.variables["net/embedding/embeddings"].shape == (3, 2)
        before = run.model_state
        run.step(batch)
        assert all(not np.array_equal(run.model_state[path], before[path]) for path in before)
        np.testing.assert_array_equal(run.step(batch, mode="eval"), run.step(batch, mode="eval"))


class Plain(keras.Model):
    """A subclass whose `call` has no argument `training`."""

    def __init__(self):
        super().__init__()
        self.out = keras.layers.Dense(2)

    def call(self, x):
        return self.out(x)


class Open(Plain):
    def call(self, x, **more):
        return self.out(x) * (2.0 if more.get("training") else 1.0)


def test_a_model_that_takes_no_training_gets_none(runner, batch):
    called = Plain()
    called(np.asarray(batch))
    for make in (Plain, Plain(), called):
        run = runner(lambda x, make=make: module(make, name="net")(x)).start(batch)
        expected = np.asarray(batch) @ run.variables["net/dense/kernel"] + run.variables["net/dense/bias"]
        np.testing.assert_allclose(run.step(batch), expected, rtol=1e-5, atol=1e-6)
    given = runner(lambda x: module(Plain, name="net")(x, training=True)).start(batch)
    np.testing.assert_array_equal(given.step(batch, mode="eval"), given.step(batch))
    run = runner(lambda x: module(Open, name="net")(x)).start(batch)
    np.testing.assert_allclose(run.step(batch), 2 * run.step(batch, mode="eval"), rtol=1e-5)
