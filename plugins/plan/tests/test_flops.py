"""Tests of operation counts of a program against counts by hand."""

import jax
import jax.numpy as jnp
import pytest

from estimator_plan.flops import count_flops


def counted(function, *arguments):
    return count_flops(jax.make_jaxpr(function)(*arguments))


def array(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def test_a_matrix_product():
    assert counted(lambda x, w: x @ w, array(32, 64), array(64, 10)).by_dtype == {"float32": 2 * 32 * 64 * 10}


def test_batch_axes_of_a_product_count_once():
    found = counted(lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), array(8, 128, 12, 64), array(8, 128, 12, 64))
    assert found.total == 2 * 8 * 12 * 128 * 128 * 64


def test_what_no_output_needs_does_not_count():
    def function(x, w):
        unused = x @ w @ w  # noqa: F841
        return x @ w

    assert counted(function, array(4, 8), array(8, 8)).total == 2 * 4 * 8 * 8


def test_dtypes_are_told_apart():
    def function(x, w):
        return x @ w, x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)

    assert counted(function, array(4, 8), array(8, 2)).by_dtype == {"float32": 128, "bfloat16": 128}


def test_elementwise_work_is_not_counted():
    assert counted(lambda x: jnp.tanh(x) * 2 + x.sum(), array(100, 100)).total == 0


def test_the_gradient_of_a_layer_is_two_products_more():
    def loss(w, x):
        return (x @ w).sum()

    found = counted(jax.grad(loss, argnums=(0, 1)), array(64, 10), array(32, 64))
    assert found.total == 2 * 2 * 32 * 64 * 10  # the sum needs no forward product, but two backward products


@pytest.mark.parametrize("layers", [1, 12])
def test_a_scan_counts_as_often_as_it_runs(layers):
    def function(x, w):
        return jax.lax.scan(lambda carry, kernel: (jnp.tanh(carry @ kernel), None), x, w)[0].sum()

    forward = layers * 2 * 32 * 64 * 64
    assert counted(function, array(32, 64), array(layers, 64, 64)).total == forward
    assert counted(jax.grad(function, argnums=(0, 1)), array(32, 64), array(layers, 64, 64)).total == 3 * forward


def test_scans_inside_scans_multiply():
    def outer(x, _):
        return jax.lax.scan(lambda carry, _: (carry @ carry, None), x, length=5)[0], None

    assert counted(lambda x: jax.lax.scan(outer, x, length=3)[0], array(4, 4)).total == 15 * 2 * 4**3


def test_rematerialisation_counts_what_is_computed_twice():
    @jax.checkpoint
    def layer(x, w):
        return jnp.sin(jnp.sin(x @ w) @ w)

    plain = counted(
        jax.value_and_grad(lambda x, w: layer.__wrapped__(x, w).sum(), argnums=(0, 1)), array(4, 4), array(4, 4)
    )
    again = counted(jax.value_and_grad(lambda x, w: layer(x, w).sum(), argnums=(0, 1)), array(4, 4), array(4, 4))
    one = 2 * 4**3
    assert plain.total == (2 + 4) * one
    assert again.total == (2 + 2 + 4) * one


def test_the_most_expensive_branch_counts():
    def function(x, flag):
        return jax.lax.cond(flag, lambda x: x @ x @ x, lambda x: x, x)

    assert counted(function, array(4, 4), array(dtype=jnp.bool_)).total == 2 * 2 * 4**3


def test_a_loop_of_unknown_length_is_counted_once_and_said():
    def function(x):
        return jax.lax.while_loop(lambda x: x.sum() < 10, lambda x: x @ x, x)

    found = counted(function, array(4, 4))
    assert found.total == 2 * 4**3
    assert [note for note in found.notes if "while" in note] != []


def convolution(stride, groups=1):
    def function(images, kernel):
        return jax.lax.conv_general_dilated(
            images,
            kernel,
            (stride, stride),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        ).sum()

    return function


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_and_its_gradients(stride):
    images, kernel = array(16, 8, 8, 4), array(3, 3, 4, 20)
    forward = 2 * 16 * (8 // stride) ** 2 * 20 * 3 * 3 * 4
    function = convolution(stride)
    assert counted(function, images, kernel).total == forward
    assert counted(jax.value_and_grad(function, argnums=(0, 1)), images, kernel).total == 3 * forward


def test_groups_of_a_convolution():
    found = counted(convolution(1, groups=4), array(16, 8, 8, 4), array(3, 3, 1, 8))
    assert found.total == 2 * 16 * 64 * 8 * 9


def test_a_transformer_layer_by_the_usual_formula():
    """The count is 24 b s h^2 + 4 b s^2 h forward, for a width of h and a hidden width of 4 h. Gradients triple it."""
    b, s, h, heads = 2, 16, 32, 4

    def layer(x, weights):
        query, key, value = (jnp.reshape(x @ weights[name], (b, s, heads, h // heads)) for name in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", scores, value).reshape(b, s, h) @ weights["o"]
        return (jnp.tanh(mixed @ weights["up"]) @ weights["down"]).sum()

    weights = {name: array(h, h) for name in "qkvo"} | {"up": array(h, 4 * h), "down": array(4 * h, h)}
    forward = 24 * b * s * h**2 + 4 * b * s**2 * h
    assert counted(layer, array(b, s, h), weights).total == forward
    assert counted(jax.value_and_grad(layer, argnums=(0, 1)), array(b, s, h), weights).total == 3 * forward


def test_the_body_of_a_shard_map_is_that_of_one_device():
    mesh = jax.sharding.AbstractMesh((4,), ("data",))
    spec = jax.sharding.PartitionSpec("data")
    function = jax.shard_map(lambda x: x @ x.T, mesh=mesh, in_specs=spec, out_specs=spec)
    assert counted(function, array(8, 6)).total == 4 * 2 * 2 * 2 * 6


def test_the_body_of_a_shard_map_over_one_of_two_axes_runs_once_for_each_part_of_that_axis():
    mesh = jax.sharding.AbstractMesh((2, 4), ("stage", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    spec = jax.sharding.PartitionSpec("stage")
    with jax.sharding.use_abstract_mesh(mesh):
        function = jax.shard_map(lambda x: x @ x.T, in_specs=spec, out_specs=spec, axis_names={"stage"})
        assert counted(function, array(8, 6)).total == 2 * 2 * 4 * 4 * 6
