"""A causal transformer with a scan over its layers, as an Estimator and as a hand-written, fully sharded step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import estimator_core as ec
from estimator_backends_tpu import TPUBackend
from estimator_core.inputs import Batch, InputPosition
from estimator_plan import find_topology, plan_training
from estimator_plan.collectives import find_collectives
from estimator_plan.hlo import read_module
from estimator_plan.layout import layout_of

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY = 24, 2048, 16, 512, 32768
SHAPES = {
    "qkv": (LAYERS, WIDTH, 3 * WIDTH),
    "out": (LAYERS, WIDTH, WIDTH),
    "up": (LAYERS, WIDTH, 4 * WIDTH),
    "down": (LAYERS, 4 * WIDTH, WIDTH),
    "table": (VOCABULARY, WIDTH),
}
#: The axis of each variable that the hand-written step splits.
SPLIT = {"qkv": 2, "out": 2, "up": 2, "down": 1, "table": 0}
OPTIMIZER = optax.adam(1e-4)


def layer(weights: Mapping[str, jax.Array], x: jax.Array) -> jax.Array:
    """Computes one layer on [batch, length, width], with whole weights."""
    batch, length, _ = x.shape
    q, k, v = jnp.split((_normal(x) @ weights["qkv"]).reshape(batch, length, 3 * HEADS, -1), 3, axis=2)
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.reshape(batch, length, -1) @ weights["out"]
    return x + jax.nn.gelu(_normal(x) @ weights["up"]) @ weights["down"]


def losses(x: jax.Array, table: jax.Array, ids: jax.Array) -> jax.Array:
    """Returns the loss of each token except the first of an example: [batch, length - 1]."""
    logits = (_normal(x[:, :-1]) @ table.T).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:])


def _normal(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """The transformer with the two functions that docs/plan.md names."""
    normal = jax.nn.initializers.normal(0.02)
    weights = {name: ec.get_variable(name, shape, normal) for name, shape in SHAPES.items()}
    table = weights.pop("table")
    x = ec.with_logical_constraint(jnp.take(table, features["ids"], axis=0), ("batch", "length", "embed"))

    @jax.checkpoint
    def one(x: jax.Array, own: Mapping[str, jax.Array]) -> tuple[jax.Array, None]:
        return layer(ec.gathered(own), x), None

    x, _ = jax.lax.scan(one, x, weights)
    loss = losses(x, ec.gathered(table), features["ids"]).mean()
    return ec.EstimatorSpec(mode, loss=loss, train_op=OPTIMIZER)


@cache
def sent_by_estimator(topology: str, examples: int) -> int:
    """Returns the bytes that a device sends in a step of the Estimator with the preset `fsdp`."""
    ids = np.zeros((8, LENGTH), np.int32)
    batch = Batch({"ids": ids}, np.zeros(8, np.int32), {}, 8, InputPosition("zeros", 0, 0, False, None))
    plan = plan_training(
        ec.Estimator(model_fn, config=ec.RunConfig(default_hooks=False)),
        batch,
        find_topology(topology, lambda name: TPUBackend, ["tpu"]),
        mesh={"fsdp": -1},
        partition_rules=[(".*", ec.FullySharded("fsdp"))],
        batch_size=examples,
    )
    assert plan.memory.fits
    return sum(each.sent_bytes for each in plan.collectives)


@cache
def sent_by_hand(topology: str, examples: int) -> int:
    """Returns the bytes that a device sends in the same step, if `shard_map` gathers weights and scatters gradients."""
    found = find_topology(topology, lambda name: TPUBackend, ["tpu"])
    mesh = jax.make_mesh(
        (found.topology.device_count,), ("fsdp",), devices=found.backend.topology_devices(found.topology)
    )
    own = {name: PartitionSpec(*[None] * axis, "fsdp") for name, axis in SPLIT.items()}
    step = jax.jit(_step_by_hand(mesh, own), donate_argnums=(0, 1))
    variables = {
        name: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, own[name]))
        for name, shape in SHAPES.items()
    }
    slots = jax.tree.map(
        lambda slot, like: slot if like is None else jax.ShapeDtypeStruct(slot.shape, slot.dtype, sharding=like),
        jax.eval_shape(OPTIMIZER.init, variables),
        optax.tree.map_params(
            OPTIMIZER,
            lambda slot, variable: variable.sharding,
            jax.eval_shape(OPTIMIZER.init, variables),
            variables,
            transform_non_params=lambda slot: NamedSharding(mesh, PartitionSpec()),
        ),
    )
    ids = jax.ShapeDtypeStruct((examples, LENGTH), jnp.int32, sharding=NamedSharding(mesh, PartitionSpec("fsdp")))
    module = read_module(step.lower(variables, slots, ids).compile().as_text())
    return sum(each.sent_bytes for each in find_collectives(module, layout_of(mesh, found.topology)))


def _step_by_hand(mesh: Mesh, own: Mapping[str, PartitionSpec]) -> Any:
    def gathered(name: str, part: jax.Array, axis: int) -> jax.Array:
        return jax.lax.all_gather(part, "fsdp", axis=axis, tiled=True)

    def loss(parts: Mapping[str, jax.Array], ids: jax.Array) -> jax.Array:
        table = gathered("table", parts["table"], SPLIT["table"])

        @jax.checkpoint
        def one(x: jax.Array, layers: Mapping[str, jax.Array]) -> tuple[jax.Array, None]:
            return layer({name: gathered(name, part, SPLIT[name] - 1) for name, part in layers.items()}, x), None

        x, _ = jax.lax.scan(one, table[ids], {name: part for name, part in parts.items() if name != "table"})
        return jax.lax.pmean(losses(x, table, ids).mean(), "fsdp")

    sharded = jax.shard_map(
        loss, mesh=mesh, in_specs=(dict(own), PartitionSpec("fsdp")), out_specs=PartitionSpec(), check_vma=False
    )

    def step(variables: Any, slots: Any, ids: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(sharded)(variables, ids)
        updates, slots = OPTIMIZER.update(gradients, slots, variables)
        return optax.apply_updates(variables, updates), slots, value

    return step
