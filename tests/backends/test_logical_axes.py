"""Tests of names of axes, which split an array inside a trace. They need no device."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

import estimator_core as ec
from estimator_core._backends.partition import logical_axis_rules, split_axes
from estimator_core.errors import ArgumentError


def constraints(shape, axes, sizes, rules):
    """Returns the partition specs in the program of one call."""
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    with jax.sharding.use_abstract_mesh(mesh), logical_axis_rules(rules):
        program = jax.make_jaxpr(lambda x: ec.with_logical_constraint(x, axes))(jnp.zeros(shape))
    return [equation.params["sharding"].spec for equation in program.eqns]


def test_the_batch_is_split_over_the_batch_axes_and_other_names_by_their_rules():
    sizes, rules = {"data": 2, "fsdp": 2, "model": 3}, {"mlp": "model"}
    (spec,) = constraints((8, 5, 6), ("batch", None, "mlp"), sizes, rules)
    assert spec == PartitionSpec(("data", "fsdp"), None, ("model",))


@pytest.mark.parametrize(("sizes", "axes"), [({"data": 1}, ("batch", None)), ({"data": 4}, (None, "embed"))])
def test_nothing_is_constrained_where_nothing_is_split(sizes, axes):
    assert constraints((8, 2), axes, sizes, {}) == []


def test_without_a_mesh_the_array_is_returned():
    array = jnp.zeros((8, 2))
    assert ec.with_logical_constraint(array, ("batch", None)) is array


@pytest.mark.parametrize(
    ("shape", "axes", "sizes", "rules", "expected"),
    [
        ((8, 6), ("batch", "model"), {"data": 2, "model": 3}, {"batch": ("data", "fsdp")}, [("data",), ("model",)]),
        ((7, 6), ("batch", None), {"data": 2}, {"batch": ("data",)}, [None, None]),
        ((8, 8), ("a", "b"), {"x": 2}, {"a": "x", "b": "x"}, [("x",), None]),
        ((8, 8), ("a", "b"), {"x": 2}, {"a": None}, [None, None]),
        ((8, 8), ("a", "b"), {"x": 1}, {"a": "x"}, [None, None]),
    ],
)
def test_each_axis_of_the_mesh_splits_one_axis_that_divides(shape, axes, sizes, rules, expected):
    assert split_axes(shape, axes, sizes, rules) == expected


def test_a_wrong_number_of_names_is_refused():
    with pytest.raises(ArgumentError, match=r"shape \(8, 2\) needs 2 axis names, given: \('batch',\)"):
        ec.with_logical_constraint(jnp.zeros((8, 2)), ("batch",))


@pytest.mark.parametrize(
    ("sizes", "constraints"), [({"data": 4}, 2), ({"data": 2, "fsdp": 2}, 2), ({"data": 1}, 0), ({"model": 2}, 0)]
)
def test_weights_are_gathered_where_only_batch_axes_split_them(sizes, constraints):
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    weights = {"kernel": jnp.zeros((8, 2)), "bias": jnp.zeros(2)}
    with jax.sharding.use_abstract_mesh(mesh):
        program = jax.make_jaxpr(ec.gathered)(weights)
    assert [equation.params["sharding"].spec for equation in program.eqns] == [PartitionSpec()] * constraints
