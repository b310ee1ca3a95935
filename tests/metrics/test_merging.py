"""Tests of the parts that the evaluation step relies on: merging dictionaries, structure checks and host metrics."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import estimator_core.metrics as metrics
from estimator_core.errors import ArgumentError, ModelFnError


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Broken(metrics.TotalsMetric):
    """A metric that keeps the size of its batch, which is not allowed."""

    seen: jax.Array
    rows: int = field(default=0, metadata={"static": True})

    def compute(self):
        return 0.0


def test_a_whole_dictionary_accumulates_under_jit():
    def step(accumulated, values):
        return metrics.merge_metrics(
            accumulated, {"mean": metrics.mean(values), "hit": metrics.accuracy(values, values)}
        )

    state = {"mean": metrics.mean(np.zeros(4)), "hit": metrics.accuracy(np.zeros(4), np.ones(4))}
    for k in (1.0, 2.0):
        state = jax.jit(step)(state, np.full(4, k))
    assert metrics.compute_metrics(state) == {"mean": 1.0, "hit": pytest.approx(2 / 3)}


def test_a_shape_that_depends_on_the_batch_names_metric_and_field():
    old, new = Broken(seen=jnp.zeros((2, 3))), Broken(seen=jnp.zeros((2, 5)))
    with pytest.raises(ModelFnError, match=r"metric 'm' \(Broken\): its field 'seen' was float32\[2, 3\]"):
        metrics.check_same_structure({"m": old}, {"m": new})


def test_a_static_field_that_depends_on_the_batch_is_named():
    old, new = Broken(seen=jnp.zeros(2), rows=4), Broken(seen=jnp.zeros(2), rows=3)
    with pytest.raises(ModelFnError, match=r"metric 'm' \(Broken\): a static field changed.*rows=4.*rows=3"):
        metrics.check_same_structure({"m": old}, {"m": new})


def test_another_type_or_name_is_refused():
    with pytest.raises(ModelFnError, match="was a Broken for an earlier batch and is a Mean now"):
        metrics.check_same_structure({"m": Broken(seen=jnp.zeros(2))}, {"m": metrics.mean(np.zeros(1))})
    with pytest.raises(ModelFnError, match=r"\['b'\] came with some batches"):
        metrics.check_same_structure({}, {"b": metrics.mean(np.zeros(1))})


def test_structure_can_be_checked_on_abstract_metrics():
    abstract = jax.eval_shape(metrics.mean, np.zeros(3))
    metrics.check_same_structure({"m": abstract}, {"m": metrics.mean(np.zeros(7))})
    with pytest.raises(ModelFnError):
        metrics.check_same_structure({"m": abstract}, {"m": metrics.mean(np.zeros(3), np.ones(3))})


def test_host_metric_concatenates_batches_in_order():
    seen = {}

    def remember(labels, scores):
        seen.update(labels=labels, scores=scores)
        return scores.sum()

    batches = [(np.arange(3), np.ones((3, 2))), (np.arange(2), np.zeros((2, 2)))]
    first, second = (metrics.on_host(remember, labels=a, scores=b) for a, b in batches)
    assert first.merge(second).compute() == 6.0
    np.testing.assert_array_equal(seen["labels"], [0, 1, 2, 0, 1])
    assert seen["scores"].shape == (5, 2)


def test_host_metric_leaves_padding_out():
    with metrics.applying_example_weights(jnp.array([1.0, 0.0])):
        metric = metrics.on_host(lambda x: x.sum(), x=np.array([3.0, 50.0]))
    assert metric.compute() == 3.0


def test_host_metric_survives_jit_and_device_get():
    metric = jax.device_get(jax.jit(lambda x: metrics.on_host(np.max, a=x))(np.array([1.0, 7.0])))
    assert metric.compute() == 7.0
    on_device, on_host = metrics.split_host_metrics({"h": metric, "m": metrics.mean(np.zeros(1))})
    assert set(on_device) == {"m"}
    assert set(on_host) == {"h"}


@pytest.mark.parametrize("arrays", [{}, {"a": np.float32(1)}, {"a": np.zeros(2), "b": np.zeros(3)}])
def test_host_metric_refuses_what_it_cannot_concatenate(arrays):
    with pytest.raises(ArgumentError, match="on_host"):
        metrics.on_host(lambda **_: 0.0, **arrays)
