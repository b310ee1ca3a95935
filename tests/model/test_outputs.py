"""Tests of named tensors and summaries."""

import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core import summary
from estimator_core._model.access import variable_scope
from estimator_core._model.tensors import tensor
from estimator_core.errors import ModelFnError


def test_outputs_keep_names_order_and_values(runner, batch):
    def model(x):
        summary.scalar("mean", x.mean())
        with variable_scope("layer"):
            summary.histogram("activations", x)
            hidden = tensor("hidden", jnp.tanh(x))
        summary.image("pictures", jnp.zeros((5, 4, 4, 1)))
        summary.image("one", np.zeros((4, 4, 3), np.uint8))
        summary.text("note", "hello")
        return hidden

    run = runner(model).start(batch)
    assert [(name, one.kind) for name, one in run.scope.summaries.items()] == [
        ("mean", "scalar"),
        ("layer/activations", "histogram"),
        ("pictures", "image"),
        ("one", "image"),
        ("note", "text"),
    ]
    np.testing.assert_allclose(run.step(batch), np.tanh(batch), rtol=1e-6)
    np.testing.assert_allclose(run.summaries["mean"], batch.mean(), rtol=1e-6)
    assert run.summaries["pictures"].shape == (3, 4, 4, 1)
    assert run.summaries["one"].shape == (1, 4, 4, 3)
    assert run.texts == {"note": "hello"}
    np.testing.assert_allclose(run.tensors["layer/hidden"], np.tanh(batch), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: summary.scalar("a", x), r"the value has shape \(8, 3\)"),
        (lambda x: summary.scalar("a", "text"), "not an array of numbers"),
        (lambda x: summary.image("a", x), r"Images are \[height, width, channels\]"),
        (lambda x: summary.image("a", jnp.zeros((4, 4, 2))), "1, 3 or 4 channels"),
        (lambda x: summary.text("a", x), "Give a Python string"),
        (lambda x: (summary.scalar("a", 1), summary.scalar("a", 2)), "is called 'a' already"),
        (lambda x: (summary.scalar("a", 1), tensor("a", x)), "is called 'a' already"),
    ],
)
def test_outputs_that_cannot_be(runner, batch, call, message):
    with pytest.raises(ModelFnError, match=message):
        runner(call).discover(batch)


@pytest.mark.parametrize(
    "call", [lambda: summary.scalar("a", 1), lambda: summary.text("a", ""), lambda: tensor("a", np.zeros(1))]
)
def test_outputs_outside_of_model_fn(call):
    with pytest.raises(ModelFnError, match="called outside of model_fn"):
        call()
