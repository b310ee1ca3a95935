"""The cluster that a process belongs to, from the environment variable TF_CONFIG."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from estimator_core.errors import ArgumentError, ArgumentTypeError


class TaskType:
    """The names of the roles in a cluster, as in tf.estimator."""

    CHIEF: Final = "chief"
    MASTER: Final = "master"
    WORKER: Final = "worker"
    PS: Final = "ps"
    EVALUATOR: Final = "evaluator"


@dataclass(frozen=True, kw_only=True)
class ClusterInfo:
    """The place of this process in its cluster. Without a cluster: worker 0, alone, chief.

    Attributes:
        task_type: the role of this process, one of `TaskType` or another name in the cluster.
        task_id: the index of this process among the processes of that role.
        is_chief: whether this process writes checkpoints and summaries.
        master: `grpc://host:port` of this process; "" if there is nothing to connect to.
        evaluation_master: the "eval_session_master" entry of TF_CONFIG; "" by default.
        num_worker_replicas: the number of training processes, including the chief.
        num_ps_replicas: the number of parameter servers.
        global_id_in_cluster: the index among all processes of the training cluster (chief first, then roles by name,
            "ps" last); None for an evaluator.
        cluster: the addresses of each role; empty for an evaluator, which is not part of the training cluster.
        environment: "cloud", "google" or another value of TF_CONFIG; "" by default.
        service: the "service" entry of TF_CONFIG.
        model_dir: the "model_dir" entry of TF_CONFIG.

    Example:
        >>> ClusterInfo().is_chief, ClusterInfo().task_type
        (True, 'worker')
    """

    task_type: str = TaskType.WORKER
    task_id: int = 0
    is_chief: bool = True
    master: str = ""
    evaluation_master: str = ""
    num_worker_replicas: int = 1
    num_ps_replicas: int = 0
    global_id_in_cluster: int | None = 0
    cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    environment: str = ""
    service: Mapping[str, Any] | None = None
    model_dir: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> ClusterInfo:
        """Reads the environment variable TF_CONFIG.

        Args:
            environ: the environment. None: the environment of this process.

        Raises:
            ArgumentError: TF_CONFIG is not JSON, or it describes a cluster in which this process has no place.
            ArgumentTypeError: an entry of TF_CONFIG has the wrong type.

        Example:
            >>> cluster = '{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}'
            >>> info = ClusterInfo.from_environment({"TF_CONFIG": cluster})
            >>> info.master, info.num_worker_replicas, info.global_id_in_cluster
            ('grpc://b:1', 2, 1)
        """
        text = (os.environ if environ is None else environ).get("TF_CONFIG") or "{}"
        try:
            tf_config = json.loads(text)
        except json.JSONDecodeError as error:
            raise ArgumentError(
                f"The environment variable TF_CONFIG is not valid JSON ({error}). Given: {text!r}"
            ) from error
        return _cluster_info(_mapping(tf_config, "TF_CONFIG"))


def _cluster_info(tf_config: Mapping[str, object]) -> ClusterInfo:
    service = tf_config.get("service")
    if service is not None and not isinstance(service, Mapping):
        raise ArgumentTypeError(f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(service)}')
    model_dir = tf_config.get("model_dir")
    if model_dir == "":
        raise ArgumentError(
            "model_dir should be non-empty. It comes from TF_CONFIG: remove the entry or give a directory."
        )
    if model_dir is not None and not isinstance(model_dir, str):
        raise ArgumentTypeError(f'"model_dir" in TF_CONFIG must be a string. Given {type(model_dir)}')
    cluster = _addresses(tf_config.get("cluster") or {})
    task = _mapping(tf_config.get("task") or {}, 'The "task" entry of TF_CONFIG')
    common: dict[str, Any] = {
        "environment": str(tf_config.get("environment", "")),
        "service": service,
        "model_dir": model_dir,
    }
    if not cluster:
        return _local(tf_config, task, common)
    return _distributed(tf_config, cluster, task, common)


def _local(tf_config: Mapping[str, Any], task: Mapping[str, Any], common: dict[str, Any]) -> ClusterInfo:
    if task.get("type", TaskType.WORKER) != TaskType.WORKER:
        raise ArgumentError('If "cluster" is not set in TF_CONFIG, task type must be WORKER.')
    if _task_index(task.get("index", 0)) != 0:
        raise ArgumentError('If "cluster" is not set in TF_CONFIG, task index must be 0.')
    return ClusterInfo(
        master=tf_config.get("session_master", ""), evaluation_master=tf_config.get("eval_session_master", ""), **common
    )


def _distributed(
    tf_config: Mapping[str, Any],
    cluster: Mapping[str, tuple[str, ...]],
    task: Mapping[str, Any],
    common: dict[str, Any],
) -> ClusterInfo:
    chief_type = TaskType.CHIEF
    if TaskType.MASTER in cluster:
        if TaskType.CHIEF in cluster:
            raise ArgumentError("If `master` node exists in `cluster`, job `chief` is not supported.")
        chief_type = TaskType.MASTER
    task_type, task_id = _validated_task(cluster, task, chief_type)
    if task_type == TaskType.EVALUATOR:
        if chief_type == TaskType.MASTER:
            raise ArgumentError("If `master` node exists in `cluster`, task_type `evaluator` is not supported.")
        return ClusterInfo(
            task_type=task_type,
            task_id=task_id,
            is_chief=False,
            evaluation_master=tf_config.get("eval_session_master", ""),
            num_worker_replicas=0,
            global_id_in_cluster=None,
            **common,
        )
    return ClusterInfo(
        task_type=task_type,
        task_id=task_id,
        is_chief=task_type == chief_type,
        master=_master(tf_config, cluster, task_type, task_id),
        num_worker_replicas=len(cluster.get(TaskType.WORKER, ())) + len(cluster[chief_type]),
        num_ps_replicas=len(cluster.get(TaskType.PS, ())),
        global_id_in_cluster=_global_id(cluster, task_type, task_id, chief_type),
        cluster=cluster,
        **common,
    )


def _validated_task(
    cluster: Mapping[str, tuple[str, ...]], task: Mapping[str, object], chief_type: str
) -> tuple[str, int]:
    if not cluster.get(chief_type):
        raise ArgumentError(f'If "cluster" is set in TF_CONFIG, it must have one "{chief_type}" node.')
    if len(cluster[chief_type]) > 1:
        raise ArgumentError(f'The "cluster" in TF_CONFIG must have only one "{chief_type}" node.')
    if not task.get("type"):
        raise ArgumentError('If "cluster" is set in TF_CONFIG, task type must be set.')
    if task.get("index") is None:
        raise ArgumentError('If "cluster" is set in TF_CONFIG, task index must be set.')
    task_type, task_id = str(task["type"]), _task_index(task["index"])
    if task_id < 0:
        raise ArgumentError("Task index must be non-negative number.")
    if task_type == TaskType.EVALUATOR:
        return task_type, task_id
    origin = "\n\nNote that these values may be coming from the TF_CONFIG environment variable."
    if task_type not in cluster:
        raise ArgumentError(f"{task_type} is not a valid task_type in the cluster_spec:\n{dict(cluster)}{origin}")
    if task_id >= len(cluster[task_type]):
        raise ArgumentError(
            f"{task_id} is not a valid task_id for task_type {task_type} in the cluster_spec:\n{dict(cluster)}{origin}"
        )
    return task_type, task_id


def _task_index(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f'The "index" of the task in TF_CONFIG must be an integer. Given: {value!r}') from None


def _master(tf_config: Mapping[str, Any], cluster: Mapping[str, tuple[str, ...]], task_type: str, task_id: int) -> str:
    if "session_master" in tf_config:
        return tf_config["session_master"]
    if sum(len(addresses) for addresses in cluster.values()) == 1:
        return ""  # alone, so there is nothing to connect to
    return f"grpc://{cluster[task_type][task_id]}"


def _global_id(cluster: Mapping[str, tuple[str, ...]], task_type: str, task_id: int, chief_type: str) -> int:
    order = sorted(cluster, key=lambda role: (role != chief_type, role == TaskType.PS, role))
    before = order[: order.index(task_type)]
    return sum(len(cluster[role]) for role in before) + task_id


def _addresses(cluster: object) -> dict[str, tuple[str, ...]]:
    result: dict[str, tuple[str, ...]] = {}
    for role, addresses in _mapping(cluster, 'The "cluster" entry of TF_CONFIG').items():
        if isinstance(addresses, Mapping):  # sparse form: {"0": "host:port"}
            sparse = cast("Mapping[str, Any]", addresses)
            addresses = [sparse[index] for index in sorted(sparse, key=int)]
        if not isinstance(addresses, list) or not all(isinstance(item, str) for item in cast("list[Any]", addresses)):
            raise ArgumentTypeError(
                f'"cluster" in TF_CONFIG must give a list of addresses for {role!r}. Given: {addresses!r}'
            )
        result[role] = tuple(cast("list[str]", addresses))
    return result


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{what} must be a dict. Given {type(value)}: {value!r}")
    return cast("Mapping[str, Any]", value)
