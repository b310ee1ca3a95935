"""Tests of the meshes that a search tries, and of the roofline by which it chooses."""

import dataclasses

import pytest

import estimator_core as ec
from estimator_core.lowering import trace_step
from estimator_plan.estimate import estimate
from estimator_plan.mesh_candidates import TRACED_AT_MOST, likely_meshes
from estimator_plan.meshes import free_meshes, named_axes
from estimator_plan.stand_ins import stand_ins
from estimator_plan.topologies import Found
from plugins.plan.tests.lent_cpus import LAYERS, WIDTH, LentCPUs, batch, layers_model_fn

EIGHT = LentCPUs().topology("lost", (8,))


def estimated(mesh, *rules, topology=EIGHT):
    config = ec.RunConfig(mesh=mesh, partition_rules=rules)
    return estimate(trace_step(layers_model_fn, config, batch(), stand_ins(topology)), topology)


def test_every_product_of_the_devices_is_there_once_with_each_rule():
    found = free_meshes(EIGHT, ("model",))
    meshes = [{axis: size for axis, size in preset.mesh.items() if size > 1} for preset in found]
    products = {tuple(sorted(mesh.items())) for mesh in meshes}
    assert len(products) == 10
    assert len({preset.name for preset in found}) == len(found) == 16
    # If no axis of the batch has two devices, the batch cannot be split.
    assert [preset.name for preset in found if preset.mesh == {"data": 1, "model": 8}] == ["model=8"]


def test_variables_stay_within_a_slice():
    two = dataclasses.replace(EIGHT, slice_count=2)
    assert {preset.mesh["data"] for preset in free_meshes(two, ("model",))} == {2, 4, 8}


@pytest.mark.parametrize(
    ("config", "axes"),
    [
        ({}, ()),
        ({"mesh": {"data": 2, "model": 4}}, ("model",)),
        ({"logical_axis_rules": {"mlp": "model", "embed": None}}, ("model",)),
        ({"partition_rules": [("a", (None, ("model", "fsdp"))), ("b", ec.FullySharded(base=("e",)))]}, ("model", "e")),
        ({"logical_axis_rules": {"mlp": "model"}, "partition_rules": [("a", ("mlp",))]}, ("model",)),
    ],
)
def test_axes_are_those_that_the_config_names(config, axes):
    assert named_axes(ec.RunConfig(**config)) == axes


def test_the_estimate_counts_variables_by_their_shardings():
    size = 4 * LAYERS * WIDTH * WIDTH
    whole, split, two = (
        estimated({"data": 8}),
        estimated({"data": 1, "fsdp": 8}, (".*", ec.FullySharded("fsdp"))),
        estimated({"data": 2, "fsdp": 4}, (".*", ec.FullySharded("fsdp"))),
    )
    assert whole.times.network == pytest.approx(2 * size * 7 / 8 / 1e9)
    assert split.times.network == pytest.approx(3 * size * 7 / 8 / 1e9)
    # Four devices form a group, so only the gradients of a quarter cross the network.
    assert two.times.links == pytest.approx(3 * size * 3 / 4 / 1e10)
    assert two.times.network == pytest.approx(2 * size / 4 / 2 / 1e9)
    assert split.state_bytes < two.state_bytes < whole.state_bytes
    assert two.rank < whole.rank


def test_a_layer_that_is_split_sends_its_activations():
    found = estimated({"data": 2, "model": 4}, (".*", (None, None, "model")))
    rows = 64 * WIDTH * 4 * LAYERS // 2
    assert found.times.links == pytest.approx(2 * rows * 3 / 4 / 1e10, rel=0.01)


def test_what_does_not_fit_comes_last_and_known_meshes_are_left_out():
    backend = LentCPUs(memory_bytes=4 * LAYERS * WIDTH * WIDTH)
    found = Found(topology=backend.topology("lost", (8,)), backend=backend)
    estimator = ec.Estimator(layers_model_fn, config=ec.RunConfig())
    known = free_meshes(found.topology, ())[:2]
    chosen = likely_meshes(estimator, batch(), found, known, batch_size=None, count=TRACED_AT_MOST)
    assert not {preset.name for preset in known} & {preset.name for preset in chosen}
    assert chosen[0].name == "data=2 fsdp=4"
    assert chosen[-1].sharded.slots_only
