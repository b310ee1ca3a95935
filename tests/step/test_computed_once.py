"""Tests of functions that are called once and whose trace already determines the results."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from estimator_core._model.shared_programs import computed_once, forget_shared

X = jnp.arange(3.0)
VALUES = {"a": jnp.ones(2), "b": jnp.ones((3, 4), jnp.bfloat16)}


@pytest.fixture(autouse=True)
def _nothing_is_shared_yet():
    forget_shared()


def assert_as_jit(function, *args):
    """Asserts the same structure, types and bits as `jax.jit`, and that no two results share memory."""
    mine, its = computed_once(function, *args), jax.jit(function)(*args)
    assert jax.tree.structure(mine) == jax.tree.structure(its)
    leaves = jax.tree.leaves(mine)
    for one, other in zip(leaves, jax.tree.leaves(its), strict=True):
        assert (one.dtype, one.weak_type, one.shape) == (other.dtype, other.weak_type, other.shape)
        assert one.tobytes() == other.tobytes()
        assert one.sharding == other.sharding
    assert len({one.unsafe_buffer_pointer() for one in leaves}) == len(leaves)


def test_a_program_without_inputs_of_its_own_is_not_compiled(compiled):
    assert computed_once(lambda x: (jnp.float32(0.5), jnp.int32(3)), X) == (0.5, 3)
    assert compiled == []


@pytest.mark.parametrize("optimizer", [optax.adam(0.1), optax.adagrad(0.1), optax.adafactor(0.1), optax.sgd(0.1, 0.9)])
def test_the_first_slots_of_an_optimizer_are_not_compiled(compiled, optimizer):
    assert_as_jit(optimizer.init, VALUES)
    assert compiled == []


def test_numbers_in_the_first_values_of_an_optimizer_are_no_other_program(compiled):
    def first(rate):
        transformation = optax.inject_hyperparams(optax.adam)(learning_rate=rate)
        return lambda values: (transformation.init(values), jax.tree.map(jnp.cumsum, values))

    for rate in (0.1, 0.2):
        assert_as_jit(first(rate), VALUES)
    assert len(compiled) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.zeros((512, 513)),
        lambda x: jnp.broadcast_to(x, (2, 3)),
        lambda x: jnp.full((2, 3), x[0]),
        lambda x: (slots := jnp.zeros(3), slots, slots + x),
        lambda x: (1.0, jnp.full(2, 3), jnp.zeros((0, 2)), jnp.full(2, jnp.nan, jnp.float16), jnp.full(2, True)),
        lambda x: jax.random.key(3),
        lambda x: jnp.broadcast_to(jax.random.key(3), (2,)),
    ],
    ids=["large", "broadcast", "number of an input", "twice", "kinds", "key", "keys"],
)
def test_results_are_those_of_jit(function):
    values, its = computed_once(function, X), jax.jit(function)(X)
    if jnp.issubdtype(jax.tree.leaves(its)[0].dtype, jax.dtypes.prng_key):
        function, values = (lambda x, made=function: jax.random.key_data(made(x))), jax.random.key_data(values)
        np.testing.assert_array_equal(values, jax.random.key_data(its))
    assert_as_jit(function, X)


def test_a_large_array_is_written_by_its_device(compiled):
    computed_once(lambda x: jnp.zeros((512, 513)), X)
    assert len(compiled) == 1


_ON_THE_SECOND = """
import jax, jax.numpy as jnp
from estimator_core._model import shared_programs
x = jax.device_put(jnp.ones(3), jax.devices()[1])
assert jax.typeof(shared_programs.computed_once(lambda: jnp.zeros(3))).sharding.mesh.empty
for device in jax.devices():
    with jax.set_mesh(jax.sharding.Mesh([device], ("data",))):
        shared = shared_programs.computed_once(lambda: jnp.zeros(3))
        for one in jax.tree.leaves([shared, jax.jit(lambda: jnp.zeros(3))()]):
            assert one.devices() == {device} and one.committed and jax.typeof(one).sharding.mesh.axis_names == ("data",)
found = shared_programs.computed_once(lambda x: (jnp.zeros(3), jnp.int32(0), x + 1), x)
assert [leaf.devices() for leaf in found] == [{jax.devices()[1]}] * 3, found
assert all(leaf.committed for leaf in found)
"""


def test_results_are_on_the_device_of_the_arguments():
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", _ON_THE_SECOND], check=True, env=environment)


def test_under_a_mesh_results_have_the_type_of_what_programs_return():
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):
        values = jax.jit(lambda: {"a": jnp.ones(2)})()
        assert_as_jit(optax.adam(0.1).init, values)
        slots = computed_once(optax.adam(0.1).init, values)
        assert {jax.typeof(leaf).sharding.mesh.axis_names for leaf in jax.tree.leaves(slots)} == {("data",)}
