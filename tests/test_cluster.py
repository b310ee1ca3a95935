"""Tests of TF_CONFIG: every row of the recorded table of tf.estimator 2.15.1, and its errors."""

import copy
import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core._cluster import ClusterInfo
from estimator_core.errors import ArgumentError
from estimator_core.testing import tiny_estimator, tiny_input_fn

CLUSTER = {"chief": ["h0:1"], "worker": ["h1:1", "h2:1"], "ps": ["h3:1", "h4:1"]}


def read(**tf_config: Any) -> ClusterInfo:
    return ClusterInfo.from_environment({"TF_CONFIG": json.dumps(tf_config)})


def task(kind: str, index: int, cluster: Any = CLUSTER) -> ClusterInfo:
    return read(cluster=cluster, task={"type": kind, "index": index})


@pytest.mark.parametrize("environ", [{}, {"TF_CONFIG": ""}, {"TF_CONFIG": "{}"}])
def test_without_a_cluster(environ: dict[str, str]):
    info = ClusterInfo.from_environment(environ)
    assert (info.task_type, info.task_id, info.is_chief) == ("worker", 0, True)
    assert (info.num_worker_replicas, info.num_ps_replicas, info.master, info.evaluation_master) == (1, 0, "", "")
    assert info.global_id_in_cluster == 0
    assert info == ClusterInfo()


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "ps", "index": 1}}))
    assert ClusterInfo.from_environment().master == "grpc://h4:1"


@pytest.mark.parametrize(
    ("kind", "index", "chief", "master", "global_id"),
    [
        ("chief", 0, True, "grpc://h0:1", 0),
        ("worker", 0, False, "grpc://h1:1", 1),
        ("worker", 1, False, "grpc://h2:1", 2),
        ("ps", 0, False, "grpc://h3:1", 3),
        ("ps", 1, False, "grpc://h4:1", 4),
    ],
)
def test_roles(kind: str, index: int, chief: bool, master: str, global_id: int):
    info = task(kind, index)
    assert (info.task_type, info.task_id, info.is_chief) == (kind, index, chief)
    assert (info.master, info.global_id_in_cluster) == (master, global_id)
    assert (info.num_worker_replicas, info.num_ps_replicas) == (3, 2)
    assert info.cluster["ps"] == ("h3:1", "h4:1")


def test_evaluator_is_no_part_of_the_cluster():
    info = task("evaluator", 0)
    assert (info.num_worker_replicas, info.num_ps_replicas, info.is_chief) == (0, 0, False)
    assert (info.global_id_in_cluster, dict(info.cluster), info.master) == (None, {}, "")
    assert task("evaluator", 7).task_id == 7


def test_other_roles_are_ordered_by_name_with_ps_last():
    cluster = {"worker": ["w:1"], "ps": ["p:1"], "chief": ["c:1"], "auditor": ["a:1", "a:2"]}
    ids = [task(kind, 0, cluster).global_id_in_cluster for kind in ("chief", "auditor", "worker", "ps")]
    assert ids == [0, 1, 3, 4]


def test_legacy_master():
    cluster = {"master": ["m:1"], "worker": ["w:1"]}
    info = task("master", 0, cluster)
    assert (info.is_chief, info.num_worker_replicas, info.global_id_in_cluster) == (True, 2, 0)
    assert not task("worker", 0, cluster).is_chief


def test_a_single_chief_is_local():
    assert task("chief", 0, {"chief": ["h:1"]}).master == ""


def test_sparse_addresses():
    assert task("worker", 1, {"chief": ["c:1"], "worker": {"1": "b:1", "0": "a:1"}}).master == "grpc://b:1"


def test_further_entries():
    info = read(
        session_master="grpc://s",
        eval_session_master="grpc://e",
        service={"k": 1},
        model_dir="runs/x",
        environment="google",
    )
    assert (info.master, info.evaluation_master) == ("grpc://s", "grpc://e")
    assert (info.service, info.model_dir, info.environment) == ({"k": 1}, "runs/x", "google")
    distributed = read(
        cluster=CLUSTER, task={"type": "chief", "index": 0}, session_master="grpc://s", eval_session_master="grpc://e"
    )
    assert (distributed.master, distributed.evaluation_master) == ("grpc://s", "")
    evaluator = read(cluster=CLUSTER, task={"type": "evaluator", "index": 0}, eval_session_master="grpc://e")
    assert evaluator.evaluation_master == "grpc://e"


@pytest.mark.parametrize(
    ("tf_config", "message"),
    [
        (
            {"cluster": CLUSTER, "task": {"type": "worker", "index": 5}},
            "5 is not a valid task_id for task_type worker in the cluster_spec",
        ),
        ({"cluster": CLUSTER, "task": {"type": "worker", "index": -1}}, "Task index must be non-negative number."),
        ({"cluster": CLUSTER, "task": {"type": "poet", "index": 0}}, "poet is not a valid task_type"),
        ({"cluster": CLUSTER, "task": {"index": 0}}, 'If "cluster" is set in TF_CONFIG, task type must be set.'),
        ({"cluster": CLUSTER}, 'If "cluster" is set in TF_CONFIG, task type must be set.'),
        ({"cluster": CLUSTER, "task": {"type": "worker"}}, 'If "cluster" is set in TF_CONFIG, task index must be set.'),
        (
            {"cluster": {"worker": ["w:1"]}, "task": {"type": "worker", "index": 0}},
            'If "cluster" is set in TF_CONFIG, it must have one "chief" node.',
        ),
        (
            {"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}},
            'The "cluster" in TF_CONFIG must have only one "chief" node.',
        ),
        ({"task": {"type": "chief"}}, 'If "cluster" is not set in TF_CONFIG, task type must be WORKER.'),
        ({"task": {"type": "worker", "index": 1}}, 'If "cluster" is not set in TF_CONFIG, task index must be 0.'),
        (
            {"cluster": {"master": ["m:1"], "chief": ["c:1"]}, "task": {"type": "master", "index": 0}},
            "If `master` node exists in `cluster`, job `chief` is not supported.",
        ),
        (
            {"cluster": {"master": ["m:1"]}, "task": {"type": "evaluator", "index": 0}},
            "If `master` node exists in `cluster`, task_type `evaluator` is not supported.",
        ),
        ({"model_dir": ""}, "model_dir should be non-empty"),
    ],
)
def test_refused(tf_config: dict[str, Any], message: str):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        read(**tf_config)


@pytest.mark.parametrize(
    ("tf_config", "message"),
    [
        ({"service": [1]}, 'If "service" is set in TF_CONFIG, it must be a dict'),
        ({"cluster": ["h:1"]}, 'The "cluster" entry of TF_CONFIG must be a dict'),
        ({"cluster": {"chief": "h:1"}}, "must give a list of addresses for 'chief'"),
        ({"task": "worker"}, 'The "task" entry of TF_CONFIG must be a dict'),
        ({"cluster": CLUSTER, "task": {"type": "worker", "index": "one"}}, "must be an integer"),
        ({"model_dir": 3}, "must be a string"),
    ],
)
def test_wrong_types(tf_config: dict[str, Any], message: str):
    with pytest.raises(TypeError, match=message):
        read(**tf_config)


@pytest.mark.parametrize("text", ["{", "cluster: chief"])
def test_no_json(text: str):
    with pytest.raises(ValueError, match="TF_CONFIG is not valid JSON"):
        ClusterInfo.from_environment({"TF_CONFIG": text})


def test_no_object():
    with pytest.raises(TypeError, match="TF_CONFIG must be a dict"):
        ClusterInfo.from_environment({"TF_CONFIG": "[1]"})


def test_frozen_and_copyable():
    info = task("chief", 0)
    assert copy.deepcopy(info) == info
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.task_id = 3  # type: ignore[misc]


CALLS: dict[str, Callable[[ec.Estimator], object]] = {
    "train": lambda estimator: estimator.train(tiny_input_fn(), max_steps=1),
    "train_and_evaluate": lambda estimator: ec.train_and_evaluate(
        estimator, ec.TrainSpec(tiny_input_fn(), max_steps=1), ec.EvalSpec(tiny_input_fn())
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_ps_task_is_told_not_to_start(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "ps", "index": 0}}))
    estimator = tiny_estimator(tmp_path / "run")
    with pytest.raises(ArgumentError, match=r"the task type is ps\. .*start no ps tasks.*partition_rules") as refused:
        CALLS[call](estimator)
    assert "train_and_evaluate" not in str(refused.value)
    assert not (tmp_path / "run").exists()
