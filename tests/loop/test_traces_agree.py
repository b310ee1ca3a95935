"""Tests of model_fn over several traces: its decisions in Python must be the same each time, or are refused by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ModelFnError
from estimator_core.model import InitialValue, request_initial_values

X, Y = np.ones((8, 3), np.float32), np.zeros(8, np.float32)


class Ones:
    """Initial values for one named variable."""

    variables = ("w",)

    def initial_values(self, specs: Any, key: Any) -> Mapping[str, InitialValue]:
        return {"w": InitialValue(value=np.ones(3, np.float32), origin="ones")}


def model(decide: Callable[[int], Mapping[str, Any]]) -> Callable[..., ec.EstimatorSpec]:
    """Returns a model_fn whose decision depends on the number of its calls."""
    calls = itertools.count()

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        decided = decide(next(calls))
        zeros = jax.nn.initializers.zeros
        found = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.ones)
        for name in decided.get("variables", ("b", "c")):
            found = found + ec.get_variable(name, (), zeros)
        if decided.get("initialised", True):
            request_initial_values(Ones())
        loss = jnp.mean((found - labels) ** 2)
        ec.tensor(decided.get("output", "found"), loss)
        train_op = ec.minimize(loss, optax.sgd(0.1), variables=decided.get("trained", ".*"))
        return ec.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def trained(tmp_path: Path, decide: Callable[[int], Mapping[str, Any]], sizes: tuple[int, ...] = (8, 8)) -> Any:
    config = ec.RunConfig(model_dir=str(tmp_path), default_hooks=False, steps_per_dispatch=1)
    batches = [({"x": X[:size]}, Y[:size]) for size in sizes]
    return ec.Estimator(model(decide), config=config).train(lambda: iter(batches))


DECISIONS: dict[str, tuple[Any, str]] = {
    "variables": (lambda call: {"variables": ("b", "c") if call == 0 else ("b",)}, r"uses the variables \['c'\]"),
    "trained": (lambda call: {"trained": ".*" if call == 0 else "w|b"}, r"trains the variables \['c \(by 1\)'\]"),
    "initialised": (lambda call: {"initialised": call == 0}, r"requests first values of \['w'\]"),
    "outputs": (
        lambda call: {"output": "found" if call == 0 else "other"},
        r"returns the outputs \['found'\], which a later one does not; the later one has \['other'\]",
    ),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_what_differs_between_traces_is_refused_by_name(tmp_path: Path, name: str) -> None:
    decide, message = DECISIONS[name]
    with pytest.raises(ModelFnError, match=message):
        trained(tmp_path, decide)


def test_a_trace_for_another_shape_is_compared_too(tmp_path: Path) -> None:
    steady = trained(tmp_path / "steady", lambda call: {}, (8, 4))
    assert int(steady.variables["w"].size) == 3
    with pytest.raises(ModelFnError, match=r"trains the variables \['c \(by 1\)'\]"):
        trained(tmp_path / "moody", lambda call: {"trained": ".*" if call < 2 else "w|b"}, (8, 4))


def test_outputs_may_follow_from_the_shape_of_a_batch(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        found = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.ones)
        full = features["x"].shape[0] == 8
        if full:
            found = found + ec.get_variable("b", (), jax.nn.initializers.zeros)
        loss = jnp.mean((found - labels) ** 2)
        ec.tensor("of_full_batches" if full else "of_short_batches", loss)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

    config = ec.RunConfig(model_dir=str(tmp_path), default_hooks=False, steps_per_dispatch=1)
    batches = [({"x": X[:size]}, Y[:size]) for size in (8, 4, 8)]
    estimator = ec.Estimator(model_fn, config=config).train(lambda: iter(batches))
    assert estimator.latest_checkpoint() == str(tmp_path / "checkpoints" / "3")


def test_what_is_requested_and_named_may_follow_from_padding(tmp_path: Path) -> None:
    """The second call has weights, another optional feature, and short batches that leave a part out."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        found = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.ones)
        if features["x"].shape[0] == 8:
            request_initial_values(Ones())
        if ec.example_weights() is not None:
            ec.tensor("padded", jnp.sum(found))
        if "extra" in features:
            ec.tensor("extra", jnp.sum(features["extra"]))
        loss = jnp.mean((found - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

    config = ec.RunConfig(model_dir=str(tmp_path), default_hooks=False, steps_per_dispatch=1)
    estimator = ec.Estimator(model_fn, config=config)
    estimator.train(lambda: iter([({"x": X[:size]}, Y[:size]) for size in (8, 4)]))
    estimator.train(lambda: iter([({"x": X, "extra": Y}, Y)]))
    padded = ec.inputs.numpy_input_fn({"x": X}, Y, batch_size=5, shuffle=False, num_epochs=1)
    estimator.train(ec.inputs.from_iterable(padded, ragged="pad"))
    assert estimator.latest_checkpoint() == str(tmp_path / "checkpoints" / "5")
