"""The objects of a job on Kubernetes, as plain mappings: JobSet, Service, NetworkPolicy, evaluator, TensorBoard."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from estimator_launchers.contract import JobSpec
from estimator_launchers.environment import SECRET, role, virtual_devices
from estimator_launchers.outcome import RESUMABLE

PORT = 7464
#: The exit statuses after which a pod may be restarted: 75, an abort of jax, SIGKILL, SIGSEGV, SIGTERM.
GOES_ON = (RESUMABLE, 134, 137, 139, 143)
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
#: The command that sets the role of a pod from its index, because the manifest is the same for all pods.
_WITH_ROLE = (
    'if [ "$JAX_PROCESS_ID" = 0 ]; then kind=chief index=0; else kind=worker index=$((JAX_PROCESS_ID - 1)); fi; '
    'export TF_CONFIG="{\\"cluster\\": $CLUSTER, \\"task\\": {\\"type\\": \\"$kind\\", \\"index\\": $index}}"; '
    'exec "$@"'
)
_Object = dict[str, Any]


def job_set(job: JobSpec) -> _Object:
    """Returns the pods that train. All of them are restarted together if that continues the run."""
    pods = {
        "completions": job.processes,
        "parallelism": job.processes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {
                    "action": "FailJob",
                    "onExitCodes": {"containerName": "main", "operator": "In", "values": list(GOES_ON)},
                },
            ]
        },
        **_deadline(job),
        "template": {"metadata": {"labels": labels(job, "trainer")}, "spec": _trainer(job)},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(job, job.name, "trainer"),
        "spec": {
            # A pod that fails by itself fails its Job for another reason, and the Job fails the JobSet.
            "failurePolicy": {
                "maxRestarts": job.max_restarts,
                "rules": [
                    {
                        "name": "own-errors",
                        "action": "FailJobSet",
                        "onJobFailureReasons": ["BackoffLimitExceeded", "DeadlineExceeded"],
                    }
                ],
            },
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": job.name},
            "replicatedJobs": [{"name": "trainers", "replicas": 1, "template": {"spec": pods}}],
        },
    }


def headless_service(job: JobSpec) -> _Object:
    """Returns the Service through which pods find process 0, even before it is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, job.name, "trainer"),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"jobset.sigs.k8s.io/jobset-name": job.name},
            "ports": [{"name": "coordinator", "port": PORT}],
        },
    }


def network_policy(job: JobSpec) -> _Object:
    """Returns the policy by which only training pods reach each other, because any client could crash their port."""
    own = {"podSelector": {"matchLabels": labels(job, "trainer")}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(job, job.name, "trainer"),
        "spec": {**own, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]},
    }


def evaluator(job: JobSpec) -> _Object:
    """Returns the single pod of the evaluator, which restarts independently."""
    told = {"name": "TF_CONFIG", "value": role(job, "evaluator", 0, address(job))}
    spec = _pod(job, [told], cards=False)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(job, f"{job.name}-evaluator", "evaluator"),
        "spec": {
            "backoffLimit": job.max_restarts,
            **_deadline(job),
            "template": {"metadata": {"labels": labels(job, "evaluator")}, "spec": spec},
        },
    }


def tensorboard(job: JobSpec) -> list[_Object]:
    """Returns TensorBoard for the model_dir, and its Service."""
    name, own = f"{job.name}-tensorboard", labels(job, "tensorboard")
    container = {
        "name": "tensorboard",
        "image": job.options.get("tensorboard-image", job.image),
        "command": ["tensorboard", _literal(f"--logdir={job.model_dir}"), "--bind_all", "--port=6006"],
        "ports": [{"name": "http", "containerPort": 6006}],
    }
    account = {"serviceAccountName": job.options["service-account"]} if "service-account" in job.options else {}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": _metadata(job, name, "tensorboard"),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": own},
                "template": {"metadata": {"labels": own}, "spec": {**account, "containers": [container]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _metadata(job, name, "tensorboard"),
            "spec": {"selector": own, "ports": [{"name": "http", "port": 80, "targetPort": 6006}]},
        },
    ]


def secret_object(job: JobSpec, value: str) -> _Object:
    """Returns the secret of the processes of this job. It is not part of a plan."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(job, f"{job.name}-run", "trainer"),
        "stringData": {"secret": value},
    }


def address(job: JobSpec) -> str:
    """Returns the address at which process 0 listens."""
    return f"{job.name}-trainers-0-0.{job.name}:{PORT}"


def labels(job: JobSpec, part: str) -> dict[str, str]:
    """Returns the labels that identify the objects of a job."""
    return {
        "app.kubernetes.io/name": job.name,
        "app.kubernetes.io/component": part,
        "app.kubernetes.io/managed-by": "estimator-launchers",
    }


def _trainer(job: JobSpec) -> _Object:
    told: list[_Object] = [
        {"name": "JAX_COORDINATOR_ADDRESS", "value": address(job)},
        {"name": "JAX_NUM_PROCESSES", "value": str(job.processes)},
        {"name": "JAX_PROCESS_ID", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}},
    ]
    if job.evaluator:
        cluster = json.dumps(json.loads(role(job, "chief", 0, address(job)))["cluster"])
        told.append({"name": "CLUSTER", "value": cluster})
    spec = _pod(job, told, cards=True)
    if job.evaluator:
        spec["containers"][0]["command"] = ["/bin/sh", "-c", _WITH_ROLE, "role", *map(_literal, job.command)]
    if job.hosts > 1:  # one machine per process
        terms = [{"labelSelector": {"matchLabels": labels(job, "trainer")}, "topologyKey": "kubernetes.io/hostname"}]
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return spec


def _pod(job: JobSpec, told: list[_Object], *, cards: bool) -> _Object:
    secret = {"name": SECRET, "valueFrom": {"secretKeyRef": {"name": f"{job.name}-run", "key": "secret"}}}
    resource = job.options.get("cards")
    variables = {**job.env, **({} if resource else virtual_devices(job, {}))}
    given = [{"name": name, "value": _literal(value)} for name, value in variables.items()]
    limits: Mapping[str, Any] = {
        **{name: job.options[name] for name in ("cpu", "memory") if name in job.options},
        **({resource: str(job.devices or 1)} if resource and cards else {}),
    }
    container: _Object = {
        "name": "main",
        "image": job.image,
        "command": [_literal(word) for word in job.command],
        "env": [*told, secret, {"name": "PYTHONUNBUFFERED", "value": "1"}, *given],
        "ports": [{"name": "coordinator", "containerPort": PORT}] if cards else [],
        "resources": {"limits": limits} if limits else {},
    }
    claim, _, path = job.options.get("volume", "").partition(":")
    if claim:
        container["volumeMounts"] = [{"name": "shared", "mountPath": path}]
    chosen = dict(pair.split("=", 1) for pair in job.options.get("node-selector", "").split(",") if pair)
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": math.ceil(job.grace_secs),
        **({"serviceAccountName": job.options["service-account"]} if "service-account" in job.options else {}),
        **({"nodeSelector": chosen} if chosen and cards else {}),
        "containers": [{name: value for name, value in container.items() if value not in ([], {})}],
        **({"volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": claim}}]} if claim else {}),
    }


def _literal(text: str) -> str:
    """Returns text that a process receives unchanged: Kubernetes replaces $(NAME) and makes $$ one sign."""
    return text.replace("$", "$$")


def _metadata(job: JobSpec, name: str, part: str) -> _Object:
    namespace = {"namespace": job.options["namespace"]} if "namespace" in job.options else {}
    return {"name": name, **namespace, "labels": labels(job, part)}


def _deadline(job: JobSpec) -> _Object:
    return {} if job.time_limit_secs is None else {"activeDeadlineSeconds": math.ceil(job.time_limit_secs)}
