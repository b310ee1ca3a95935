"""Tests of presets and of the search among them, on eight CPU devices in a separate process."""

from dataclasses import replace
from pathlib import Path

import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.testing import run_with_devices
from estimator_plan import load_preset, presets, save_preset
from estimator_plan.preset import tensor_presets

ROOT = Path(__file__).parents[3]

SEARCH = """
import sys; sys.path.insert(0, sys.argv[1])
import estimator_core as ec
from estimator_plan import Found, search_plans, search_report
from plugins.plan.tests.lent_cpus import LentCPUs, batch, layers_model_fn

def found(memory):
    backend = LentCPUs(memory)
    return Found(topology=backend.topology("cpu", (8,)), backend=backend)

estimator = ec.Estimator(layers_model_fn, config=ec.RunConfig())
ranked = search_plans(estimator, batch(), found(2**30), meshes=0, dollars_per_device_hour=3.6)
by_name = {each.preset.name: each for each in ranked}
assert set(by_name) == {"data", "zero1", "fsdp"}
assert [each.seconds for each in ranked] == sorted(each.seconds for each in ranked)
whole, zero1, fsdp = (by_name[name].plan.memory for name in ("data", "zero1", "fsdp"))
assert zero1.variables == whole.variables and zero1.slots < whole.slots / 7, (zero1, whole)
assert fsdp.variables == whole.variables // 8 and fsdp.slots == zero1.slots
assert by_name["fsdp"].plan.mesh == {"data": 1, "fsdp": 8}
for each in ranked:
    assert abs(each.dollars - each.seconds * 1e6 / 3600 * 3.6 * 8) < 1e-9
text = search_report(ranked)
assert text.splitlines()[1].split()[0] == ranked[0].preset.name, text
assert f"Best: {ranked[0].preset.name}, bound by" in text

# What the least of them needs fits nobody but the least, without and with rematerialisation.
least = min(each.plan.memory.needed for each in ranked)
tight = search_plans(estimator, batch(), found(least), meshes=0)
assert tight[0].plan.memory.needed == least and tight[0].seconds < float("inf")
assert {each.preset.remat for each in tight} == {"none"}
none = search_plans(estimator, batch(), found(1000), meshes=0, accumulate_steps=(1,))
assert len(none) == 6 and {each.preset.remat for each in none} == {"none", "full"}
assert "None of them is known to fit." in search_report(none)

# Where nothing fits, micro-batches are tried last, and only then.
parts = search_plans(estimator, batch(), found(1000), meshes=0, remats=("none",), accumulate_steps=(1, 2))
assert sorted(each.preset.accumulate_steps for each in parts) == [1, 1, 1, 2, 2, 2]
assert {each.preset.accumulate_steps for each in ranked} == {1}

# Batches are compared by the time of an example.
sizes = search_plans(estimator, batch(), found(2**30), meshes=0, batch_sizes=(64, 512))
assert len(sizes) == 6 and {each.plan.examples for each in sizes} == {64, 512}
assert sizes[0].plan.examples == 512 and sizes[0].seconds > sizes[-1].seconds / 8
times = [each.seconds / each.plan.examples for each in sizes]
assert times == sorted(times)

# An axis that the rules of the program name is tried with several sizes.
config = ec.RunConfig(mesh={"data": -1, "model": 2}, logical_axis_rules={"mlp": "model"})
named = ec.Estimator(layers_model_fn, config=config)
meshes = [dict(each.preset.mesh) for each in search_plans(named, batch(), found(2**30), meshes=0)]
for size in (2, 4):
    assert {"data": -1, "model": size} in meshes and {"data": 1, "fsdp": -1, "model": size} in meshes
assert len(meshes) == 7
print("checked")
"""

FREE = """
import sys; sys.path.insert(0, sys.argv[1])
import estimator_core as ec
from estimator_plan import Found, search_plans, search_report
from plugins.plan.tests.lent_cpus import LentCPUs, batch, layers_model_fn

backend = LentCPUs()
found = Found(topology=backend.topology("cpu", (8,)), backend=backend)
estimator = ec.Estimator(layers_model_fn, config=ec.RunConfig())
ranked = search_plans(estimator, batch(), found, meshes=1)
best = ranked[0]
# A network joins two groups of four. No preset keeps the variables of a group off the network.
assert (best.preset.name, best.plan.mesh) == ("data=2 fsdp=4", {"data": 2, "fsdp": 4})
assert len(ranked) == 4 and best.seconds < 0.5 * ranked[1].seconds
across = sum(each.sent_bytes for each in best.plan.collectives if each.crosses_groups)
assert across < best.sent_bytes / 8
assert "among 4 devices, and the gradients of one part in 4 among 2." in search_report(ranked)
print("checked")
"""


@pytest.mark.slow
def test_the_search_finds_a_mesh_that_no_preset_has():
    assert run_with_devices(8, FREE, str(ROOT)).endswith("checked")


@pytest.mark.slow
def test_the_search_ranks_the_presets_by_time_and_memory():
    assert run_with_devices(8, SEARCH, str(ROOT)).endswith("checked")


def test_a_preset_is_not_saved_over_another_file(tmp_path):
    (tmp_path / "line.toml").write_text("[hparams]\n")
    with pytest.raises(ArgumentError, match="is not a plan"):
        save_preset(presets()["data"], tmp_path / "line.toml")
    with pytest.raises(ArgumentError, match="no directory"):
        save_preset(presets()["data"], tmp_path / "missing" / "plan.toml")
    assert (tmp_path / "line.toml").read_text() == "[hparams]\n"


@pytest.mark.parametrize("name", list(presets()))
def test_a_saved_preset_reads_back_and_run_config_takes_it(name, tmp_path):
    save_preset(presets(2)[name], tmp_path / "plan.toml")
    found = load_preset(tmp_path / "plan.toml")
    assert found.run_config() == presets(2)[name].run_config()
    own = ("embedding", ("data", None))
    config = ec.RunConfig(**found.run_config([own]))
    assert (config.mesh, config.partition_rules[0]) == (dict(presets(2)[name].mesh), own)


def test_micro_batches_and_layers_that_are_split_read_back(tmp_path):
    for preset in tensor_presets("model", 4, 2).values():
        chosen = replace(preset, accumulate_steps=4, remat="full")
        save_preset(chosen, tmp_path / "plan.toml")
        given = load_preset(tmp_path / "plan.toml").run_config()
        assert given == chosen.run_config()
        assert ec.RunConfig(**given).accumulate_steps == 4


def test_variables_are_not_split_across_slices():
    assert presets(4)["fsdp"].mesh == {"data": 4, "fsdp": -1}
    assert presets(4)["fsdp"].sharded == ec.FullySharded("fsdp")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "FileNotFoundError"),
        ("mesh = ", "TOMLDecodeError"),
        ("format = 7", "format 7 is not known"),
        ("format = 1", "KeyError"),
        ('format = 1\nname = "a"\n[mesh]\ndata = 1\n[sharded]\nwidth = 3', "width"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_by_name(text, words, tmp_path):
    file = tmp_path / "plan.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ArgumentError, match=words) as raised:
        load_preset(file)
    assert str(file) in str(raised.value)
