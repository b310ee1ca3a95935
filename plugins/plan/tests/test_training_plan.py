"""Tests of the whole plan, on CPU devices that are lent as a topology, and on devices without a compiler."""

import json

import jax
import jax.numpy as jnp
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.testing import run_with_devices
from estimator_plan import compiling, report
from plugins.plan.tests import lent_cpus
from plugins.plan.tests.lent_cpus import LAYERS, WIDTH, BoundedCPUs, planned

PARAMETERS = LAYERS * WIDTH * WIDTH * 4
FORWARD = LAYERS * 2 * 64 * WIDTH * WIDTH


def test_one_device():
    plan = planned("cpux1")
    memory = plan.memory
    assert plan.mesh == {"data": 1}
    assert memory.variables == PARAMETERS
    assert memory.slots == 2 * PARAMETERS + 4  # adam: two moments and a counter
    assert memory.batch == 64 * WIDTH * 4 + 64 * 4
    assert memory.donated == memory.state + 16  # includes the clock
    assert memory.needed >= memory.state + memory.batch
    assert (memory.fits, memory.shortfall, plan.advice) == (True, 0, ())
    # One forward product and two backward. In a scan, the gradient of the features is computed with the others.
    assert plan.flops == {"float32": 3 * FORWARD}
    assert plan.collectives == ()


def test_the_compiler_counts_a_loop_once_and_the_plan_does_not():
    plan = planned("cpux1")
    assert plan.compiler_flops is not None
    assert plan.compiler_flops < 0.2 * sum(plan.flops.values())


def test_a_step_that_does_not_fit_is_told_so_with_the_shortfall_and_what_to_change():
    plan = planned("cpux1", memory_bytes=2**18)
    assert plan.memory.fits is False
    assert plan.memory.shortfall == plan.memory.needed - 2**18
    text = report(plan)
    assert "DOES NOT FIT" in text
    assert any("at least 3 devices" in line for line in plan.advice)
    assert any('remat="full"' in line for line in plan.advice)
    assert any("bfloat16" in line for line in plan.advice)


def test_what_has_been_done_already_is_not_advised():
    plan = planned("cpux1", memory_bytes=2**18, config={"precision": "bfloat16", "remat": "full"})
    assert [line for line in plan.advice if "remat=" in line or "precision=" in line] == []
    assert set(plan.flops) == {"bfloat16"}


def test_rematerialisation_costs_operations():
    assert planned("cpux1", config={"remat": "full"}).flops["float32"] > planned("cpux1").flops["float32"]


def test_micro_batches_cost_the_same_operations_and_the_average_of_their_gradients():
    whole, parts = planned("cpux1"), planned("cpux1", config={"accumulate_steps": 4})
    average = 2 * 4 * (PARAMETERS // 4 + 1)  # includes the loss
    assert parts.flops["float32"] == whole.flops["float32"] + average


def test_the_batch_size_is_that_of_all_devices_together():
    assert planned("cpux1", batch_size=256).flops["float32"] == 4 * planned("cpux1").flops["float32"]
    with pytest.raises(ArgumentError, match="batch_size"):
        planned("cpux1", batch_size=0)


def test_without_a_compiler_the_plan_says_what_it_can():
    plan = planned("lostx64", batch_size=128)
    assert plan.memory.fits is None
    assert plan.memory.variables == PARAMETERS
    assert plan.flops == {name: 2 * count for name, count in planned("cpux1").flops.items()}
    assert (plan.collectives, plan.traffic, plan.compile_seconds) == (None, None, None)
    assert any("the compiler is not installed" in note for note in plan.notes)
    assert "needed at least" in report(plan)
    assert planned("lostx64", memory_bytes=2**18).memory.fits is False


def test_without_a_compiler_the_state_is_split_all_the_same():
    rules = [(".*", ec.FullySharded())]
    for count in (8, 64):
        assert planned(f"lostx{count}", partition_rules=rules).memory.variables == PARAMETERS // count


@pytest.mark.parametrize(
    ("batch", "mesh", "sharing"), [(64, {"data": -1}, 8), (64, {"data": 4}, 4), (63, {"data": 4}, 1)]
)
def test_operations_of_a_device_are_those_that_it_computes(batch, mesh, sharing):
    """A mesh may leave devices out, and each device computes the whole batch if the batch does not divide."""
    plan = planned("lostx8", batch_size=batch, mesh=mesh)
    flops = sum(plan.flops.values())
    assert f"; {flops / sharing:.4g} a device\n" in report(plan)
    assert plan.times.compute == pytest.approx(flops / sharing / 1e12)


def test_json_has_everything_and_only_json():
    for topology in ("cpux1", "lostx8"):
        plan = planned(topology)
        values = json.loads(json.dumps(plan.to_json()))
        assert values["format"] == 1
        assert values["memory"]["needed"] == plan.memory.needed
        assert values["flops"]["total"] == sum(plan.flops.values())
        assert values["topology"]["figures"]["peak_flops"]["float32"] == 1e12


def test_a_mesh_that_the_devices_do_not_fill_is_refused():
    with pytest.raises(ArgumentError, match="devices"):
        planned("lostx8", mesh={"data": 16})
    with pytest.raises(ArgumentError, match="does not divide"):
        planned("lostx8", mesh={"data": -1, "model": 3})


EIGHT = """
import sys; sys.path.insert(0, sys.argv[1])
import estimator_core as ec
from plugins.plan.tests.lent_cpus import planned
whole = planned("cpux8")
split = planned("cpux8", partition_rules=[(".*", ec.FullySharded())])
odd = planned("cpux8", batch_size=60)
two = planned("cpux2")
def kinds(plan): return {each.kind: (each.group_size, each.crosses_groups) for each in plan.collectives}
assert whole.memory.variables == two.memory.variables == %(parameters)d
assert split.memory.variables == %(parameters)d // 8
assert split.memory.donated < whole.memory.donated / 7
assert kinds(whole)["all-reduce"] == (8, True), kinds(whole)
assert kinds(two)["all-reduce"] == (2, False), kinds(two)
# Gradients are reduced once, whatever else is: the parameters and the loss.
reduced = sum(each.payload_bytes for each in whole.collectives if each.kind == "all-reduce")
assert %(parameters)d <= reduced < 1.01 * %(parameters)d, reduced
assert "all-gather" in kinds(split), kinds(split)
assert split.flops == whole.flops == two.flops
assert whole.times.compute * 4 == two.times.compute
assert whole.times.network > 0 and whole.times.links == 0 and two.times.network is None
assert any("is not divisible by 8" in note for note in odd.notes), odd.notes
assert odd.times.compute > 7 * whole.times.compute
print("checked")
"""


def test_eight_devices():
    from pathlib import Path

    root = Path(__file__).parents[3]
    assert run_with_devices(8, EIGHT % {"parameters": PARAMETERS}, str(root)).endswith("checked")


def test_processors_bound_a_step_whose_compiler_is_not_installed(monkeypatch):
    assert planned("lostx1").memory.at_most is None
    monkeypatch.setattr(BoundedCPUs, "workspace_bytes", 4096)
    plan, there = planned("lostx1", lender=BoundedCPUs), planned("cpux1").memory
    held = there.temporary + 4096
    assert plan.memory.at_most == plan.memory.needed + held + held // 64  # gaps between arrays
    assert plan.memory.fits is True
    assert "It fits by an upper bound" in report(plan)
    smaller = planned("lostx1", memory_bytes=plan.memory.at_most - 1, lender=BoundedCPUs)
    assert smaller.memory.fits is None
    split = planned("lostx8", partition_rules=[(".*", ec.FullySharded())], lender=BoundedCPUs).memory
    assert there.state / 8 < split.at_most < plan.memory.at_most


def test_a_cumulative_sum_is_bounded(monkeypatch):
    """With jax 0.11 and later, the CPU compiler ends the process at the form that it has for cards."""

    def model_fn(features, labels, mode):
        y = jnp.cumsum(features["x"] * ec.get_variable("scale", ()), axis=0).sum(-1)
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1))

    monkeypatch.setattr(lent_cpus, "layers_model_fn", model_fn)
    memory = planned("lostx1", lender=BoundedCPUs).memory
    assert memory.needed < memory.at_most < memory.needed + 2**20


def unreadable(self):
    raise jax.errors.JaxRuntimeError("INTERNAL: async-update instruction should have 1 operands")


def test_a_program_that_jaxlib_cannot_read_is_written_by_its_compiler(monkeypatch):
    readable = planned("cpux1")
    monkeypatch.setattr(jax.stages.Compiled, "as_text", unreadable)
    plan = planned("cpux1")
    assert (plan.collectives, plan.traffic, plan.notes) == (readable.collectives, readable.traffic, readable.notes)
    assert plan.traffic > 0


def test_a_program_that_nobody_writes_leaves_the_figures_that_need_no_text(monkeypatch):
    monkeypatch.setattr(jax.stages.Compiled, "as_text", unreadable)
    monkeypatch.setattr(compiling, "compile_step", lambda step, options: None)
    plan = planned("cpux1")
    assert (plan.collectives, plan.traffic) == (None, None)
    assert plan.memory.compiled
    assert any("async-update" in note for note in plan.notes)
