"""Tests of layers in stages: they match a plain scan in training, evaluation, prediction and exports."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core.errors import ArgumentError
from estimator_core.testing import run_with_devices
from estimator_plan import pipelined

ROOT = Path(__file__).parents[3]
WORKER = "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv[1:] = sys.argv[2:]\n" + (
    "runpy.run_module('plugins.plan.tests.stages_worker', run_name='__main__')"
)


def worker(what: str, folder: Path) -> Any:
    return json.loads(run_with_devices(8, WORKER, str(ROOT), what, str(folder)).splitlines()[-1])


@pytest.mark.slow
def test_stages_compute_what_a_scan_does(tmp_path):
    float32, bfloat16 = worker("numbers", tmp_path)
    for found in float32:
        assert found["y"] <= 1e-6
        assert found["gradients"] <= 1e-6
    # If no product is cut, results are equal to the bit. Gradients are added in float32, and rounded once.
    alone, *staged = bfloat16
    assert staged[0]["y"] == 0.0
    for found in staged:
        assert found["exact"] <= 1.5 * alone["exact"]


def test_runs_in_stages_are_those_of_one_device_and_continue_there(tmp_path):
    results = worker("runs", tmp_path)
    for steps in (4, 8):
        expected = results[f"alone {steps}"]
        for name in ("staged", "back"):
            found = results[f"{name} {steps}"]
            for key in ("loss", "error"):
                assert found["metrics"][key] == pytest.approx(expected["metrics"][key], abs=1e-5)
            np.testing.assert_allclose(found["predictions"], expected["predictions"], rtol=0, atol=1e-5)
            for variable, value in expected["values"].items():
                np.testing.assert_allclose(found["values"][variable], value, rtol=0, atol=1e-6)


SEARCHED = """
import sys; sys.path.insert(0, sys.argv[1])
import estimator_core as ec
from estimator_plan import Found, search_plans
from plugins.plan.tests.lent_cpus import LentCPUs, batch, staged_model_fn

backend = LentCPUs()
found = Found(topology=backend.topology("cpu", (8,)), backend=backend)
staged = ec.RunConfig(partition_rules=[("layers/.*", ("stage",))])
ranked = search_plans(ec.Estimator(staged_model_fn, config=staged), batch(), found, meshes=0)
assert {each.preset.name for each in ranked} == {"data", "zero1", "fsdp", "pipeline stage=2"}
# A network joins two groups of four. Nine rounds send 512 bytes of a device, there and back.
best, second = ranked[:2]
assert best.plan.mesh == {"stage": 2, "data": 4} and best.seconds < 0.5 * second.seconds, [best.plan, second.plan]
sent = {each.axes: each for each in best.plan.collectives if each.kind == "collective-permute"}
across = [each.sent_bytes for each in best.plan.collectives if each.crosses_groups]
assert sent["stage",].crosses_groups and 9 * 2 * 512 <= sent["stage",].sent_bytes <= sum(across) < 2**15, across
layers = best.plan.memory.whole_state // 3
assert abs(best.plan.memory.variables - layers // 2) < 1000

# Twelve layers are not shared by five stages: they are left out.
ten = Found(topology=backend.topology("lost", (20,)), backend=backend)
estimator = ec.Estimator(staged_model_fn, config=staged)
names = {each.preset.name for each in search_plans(estimator, batch(), ten, meshes=0)}
assert names == {"data", "zero1", "fsdp"}, names
print("checked")
"""


@pytest.mark.slow
def test_the_search_tries_stages_where_the_program_has_them():
    assert run_with_devices(8, SEARCHED, str(ROOT)).endswith("checked")


@pytest.mark.slow
@pytest.mark.plugins
def test_an_export_of_a_run_in_stages_answers_on_one_device(tmp_path):
    answered, predicted = worker("export", tmp_path)
    np.testing.assert_allclose(answered, predicted, rtol=0, atol=1e-5)


def layer(x, kernel):
    return jnp.tanh(x @ kernel)


@pytest.mark.parametrize(
    ("kernels", "x", "microbatches", "words"),
    [
        ((4, 3, 3), (8, 3), 0, "microbatches should be >= 1, given: 0"),
        ((3, 3, 3), (8, 3), 4, "3 layers cannot be shared equally by the 2 devices along the axis 'stage'"),
        ((), (8, 3), 4, r"all arrays of weights should have the same first axis, given shapes: \[\(\)\]"),
    ],
)
def test_what_cannot_be_staged_is_refused(kernels, x, microbatches, words):
    mesh = jax.sharding.AbstractMesh((2,), ("stage",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.sharding.use_abstract_mesh(mesh), pytest.raises(ArgumentError, match=words):
        jax.eval_shape(lambda w, x: pipelined(layer, w, x, microbatches=microbatches), jnp.zeros(kernels), jnp.zeros(x))


def test_arrays_of_examples_have_one_first_axis():
    with pytest.raises(ArgumentError, match=r"all arrays of x should have the same first axis.*\(2,\), \(3,\)"):
        pipelined(lambda x, kernel: x, jnp.zeros((2, 1)), {"a": jnp.zeros(2), "b": jnp.zeros(3)})


@pytest.mark.parametrize(("rows", "rounds"), [(16, 5), (8, 5), (12, 3), (4, 3), (5, 2)])
def test_a_batch_is_cut_into_the_micro_batches_that_divide_it(rows, rounds):
    """Two devices split the batch. There is a round for each micro-batch, and one until the last stage starts."""
    mesh = jax.sharding.AbstractMesh((2, 2), ("stage", "data"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    with jax.sharding.use_abstract_mesh(mesh):
        traced = jax.make_jaxpr(lambda w, x: pipelined(layer, w, x, microbatches=4))(
            jnp.zeros((4, 3, 3)), jnp.zeros((rows, 3))
        )
    assert [each.params["length"] for each in traced.eqns if each.primitive.name == "scan"] == [rounds]
