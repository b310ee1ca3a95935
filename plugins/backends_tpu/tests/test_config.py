"""Tests of TPUConfig and of the RunConfig that it changes."""

import dataclasses
import inspect

import pytest

import estimator_core as ec
from estimator_backends_tpu import InputPipelineConfig, TPUConfig, TPURunConfig
from estimator_backends_tpu.config import on_tpu
from estimator_core.errors import ArgumentError, ArgumentTypeError


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"iterations_per_loop": 0}, "iterations_per_loop"),
        ({"iterations_per_loop": "30s"}, '"auto" measures'),
        ({"iterations_per_loop": True}, "iterations_per_loop"),
        ({"num_shards": 0}, "num_shards"),
        ({"num_cores_per_replica": 3}, "num_cores_per_replica"),
        ({"per_host_input_for_training": False}, "once per process"),
        ({"per_host_input_for_training": InputPipelineConfig.PER_SHARD_V1}, "once per process"),
        ({"per_host_input_for_training": InputPipelineConfig.BROADCAST}, "once per process"),
        ({"experimental_host_call_every_n_steps": 0}, "host_call"),
        ({"input_partition_dims": [1, 2]}, "with_sharding_constraint"),
    ],
)
def test_values_that_cannot_be_used_are_refused(given, words):
    with pytest.raises(ArgumentError, match=words):
        TPUConfig(**given)


@pytest.mark.parametrize("value", [True, InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.PER_HOST_V2])
def test_inputs_by_process_are_taken(value):
    assert TPUConfig(per_host_input_for_training=value).per_host_input_for_training == value


@pytest.mark.parametrize("name", ["master", "evaluation_master", "cluster"])
def test_addresses_are_refused_with_what_replaces_them(name):
    with pytest.raises(ArgumentError, match="find each other"):
        TPURunConfig(**{name: "grpc://10.0.0.1"})


def test_unknown_arguments_are_refused_as_by_run_config():
    with pytest.raises(ArgumentTypeError, match="tpu_config"):
        TPURunConfig(tpu_confg=TPUConfig())
    with pytest.raises(ArgumentTypeError, match="TPUConfig"):
        TPURunConfig(tpu_config={"iterations_per_loop": 2})


@pytest.mark.parametrize(
    "given",
    [{}, {"save_checkpoints_steps": 7}, {"save_checkpoints_secs": 9}, {"save_checkpoints_steps": None}],
    ids=str,
)
def test_replace_keeps_everything_else(given):
    before = TPURunConfig(model_dir="runs/x", tpu_config=TPUConfig(num_shards=4), **given)
    after = before.replace(tf_random_seed=5)
    assert isinstance(after, TPURunConfig)
    assert after == before.replace(tf_random_seed=5, tpu_config=TPUConfig(num_shards=4))
    assert (after.tpu_config, after.tf_random_seed) == (TPUConfig(num_shards=4), 5)
    assert (after.save_checkpoints_steps, after.save_checkpoints_secs) == (
        before.save_checkpoints_steps,
        before.save_checkpoints_secs,
    )
    plain = ec.RunConfig(model_dir="runs/x", **given).replace(save_checkpoints_steps=3)
    changed = before.replace(save_checkpoints_steps=3)
    assert changed.save_checkpoints_steps == plain.save_checkpoints_steps == 3
    assert changed.save_checkpoints_secs is plain.save_checkpoints_secs is None


def test_on_tpu_sets_backend_mesh_and_loop():
    config = on_tpu(TPURunConfig(tpu_config=TPUConfig(iterations_per_loop=100)))
    assert (config.backend, config.mesh, config.steps_per_dispatch) == ("tpu", {"data": -1}, 100)


def test_on_tpu_leaves_a_mesh_that_was_given():
    given = {"data": 2, "expert": 4}
    config = on_tpu(TPURunConfig(mesh=given, tpu_config=TPUConfig(num_cores_per_replica=8)))
    assert config.mesh == given


def test_num_shards_and_cores_per_replica_are_axes():
    config = on_tpu(TPURunConfig(tpu_config=TPUConfig(num_shards=4, num_cores_per_replica=2)))
    assert config.mesh == {"data": 4, "model": 2}


def test_the_signature_is_that_of_the_fields():
    names = [field.name for field in dataclasses.fields(TPURunConfig)]
    assert list(inspect.signature(TPURunConfig).parameters) == names
