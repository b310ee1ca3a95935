"""Tests that only the planned run uses a program that the plan keeps, in another folder too."""

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError, BackendUnavailableError
from estimator_core.testing import run_with_devices
from estimator_plan import Found, KeptProgram, keep_program, kept_programs, plugin
from estimator_plan.taken_program import differences
from plugins.plan.tests.lent_cpus import LentCPUs, batch, layers_model_fn

ROOT = Path(__file__).parents[3]
PROCESS = f"""import sys; sys.path.insert(0, {str(ROOT)!r})
from plugins.plan.tests import kept_runs
{{"plan": kept_runs.plan, "run": kept_runs.run}}[sys.argv[1]](*sys.argv[2:])"""
KEPT = KeptProgram(
    file="jit__step-0-cache",
    topology="v5e:2x4",
    kind="TPU v5 lite",
    devices=8,
    mesh={"data": 8},
    examples=64,
    seconds=9.0,
    versions={"jax": "0.10.2", "libtpu": "0.0.52"},
)


@pytest.mark.slow
def test_only_the_run_that_was_planned_loads_its_step_and_others_say_why(tmp_path):
    run_with_devices(8, PROCESS, "plan", str(tmp_path / "planned"))
    assert [kept.mesh for kept in kept_programs(tmp_path / "planned")] == [{"data": 1, "fsdp": 8}, {"data": 8}]
    shutil.move(tmp_path / "planned", tmp_path / "elsewhere")
    lines = run_with_devices(8, PROCESS, "run", str(tmp_path / "elsewhere"), str(tmp_path / "runs")).splitlines()
    found = json.loads(lines[-1])
    for same in ("fsdp", "data", "resumed"):
        assert found[same]["loaded"] == [True], (same, found)
        assert "The training step was loaded" in found[same]["told"][0]
    assert found["batch"]["told"] == ["The training step was compiled: examples: 64 in the plan, 128 here."]
    for other in ("batch", "program", "flags"):
        assert found[other]["loaded"] == [False], (other, found)
    assert all("XLA_FLAGS" in found[other]["told"][0] for other in ("program", "flags"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"versions": {"jax": "0.10.2", "libtpu": "0.0.50"}}, "libtpu: 0.0.52 in the plan, 0.0.50 here"),
        ({"versions": {"jax": "0.10.2"}}, "libtpu: 0.0.52 in the plan, None here"),
        ({"kind": "TPU v5"}, "kind: TPU v5 lite in the plan, TPU v5 here"),
        ({"devices": 4, "mesh": {"data": 4}}, "devices: 8 in the plan, 4 here; mesh: {'data': 8} in the plan, "),
    ],
)
def test_what_differs_is_named(changed, words):
    assert "; ".join(differences(KEPT, replace(KEPT, **changed))).startswith(words)


@pytest.mark.parametrize(
    ("topology", "config", "error", "words"),
    [
        ("cpux1", {}, ArgumentError, "several devices"),
        ("lostx8", {}, BackendUnavailableError, "Install it"),
        ("cpux1", {"steps_per_dispatch": 20}, ArgumentError, "steps_per_dispatch"),
    ],
)
def test_no_other_program_than_that_of_the_run_is_kept(topology, config, error, words, tmp_path):
    family, count = topology.split("x")
    found = Found(topology=LentCPUs().topology(family, (int(count),)), backend=LentCPUs())
    with pytest.raises(error, match=words):
        keep_program(ec.Estimator(layers_model_fn, config=ec.RunConfig(**config)), batch(), found, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_program_for_cards_is_not_kept(tmp_path):
    backend = LentCPUs()
    backend.compiler_options = lambda: {"xla_gpu_enable_latency_hiding_scheduler": True}
    found = Found(topology=backend.topology("cpu", (8,)), backend=backend)
    with pytest.raises(ArgumentError, match="cards choose their kernels"):
        keep_program(ec.Estimator(layers_model_fn, config=ec.RunConfig()), batch(), found, tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "programs": [{"file": 1}]}'])
def test_a_broken_record_is_a_line_in_the_log_and_no_reason_to_stop(text, tmp_path, caplog):
    (tmp_path / "planned.json").write_text(text)
    run = SimpleNamespace(mode="train", config=ec.RunConfig(compile_cache=str(tmp_path)))
    with caplog.at_level(logging.INFO, "estimator_plan"):
        plugin.estimator_run_start(run)
        plugin.estimator_run_end(run, None)
    assert [str(tmp_path / "planned.json") in each.message for each in caplog.records] == [True]


def test_a_run_without_kept_programs_is_left_alone(tmp_path):
    caches = jax.config.jax_persistent_cache_enable_xla_caches
    for cache in (None, "auto", str(tmp_path)):
        run = SimpleNamespace(mode="train", config=ec.RunConfig(compile_cache=cache))
        plugin.estimator_run_start(run)
        assert jax.config.jax_persistent_cache_enable_xla_caches == caches
        plugin.estimator_run_end(run, None)
