"""The launcher of Kubernetes: a JobSet with a headless Service, an evaluator and TensorBoard. kubectl submits them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from estimator_core.errors import ArgumentError
from estimator_launchers import manifests
from estimator_launchers.contract import JobSpec, JobStatus, Plan, PlannedFile
from estimator_launchers.environment import new_secret
from estimator_launchers.errors import LaunchError
from estimator_launchers.following import Kept
from estimator_launchers.kubectl import PodLog, WatchedPods, kubectl
from estimator_launchers.pods import Told, ends

#: The seconds between two queries about one job, which several threads follow, and between two queries about its pods.
_ASK_SECS, _LOOK_SECS = 1.0, 0.5
#: The seconds for which a cluster may not answer about a known job, for example during an upgrade of its control plane.
_PATIENCE_SECS = 1800.0
#: The suffix of the evaluator's Job, after the name of the job.
_EVALUATOR = "-evaluator"
OPTIONS: Final[Mapping[str, str]] = {
    "cards": "the resource of a card, for example nvidia.com/gpu; --devices sets the number for each process",
    "cpu": "processors of each process, for example 8",
    "memory": "memory of each process, for example 64Gi",
    "namespace": "where the objects are created",
    "network-policy": "no: the manifest has none, if you may not create one (default: yes)",
    "node-selector": "labels of the nodes, a=b,c=d",
    "service-account": "the account of the pods, for access to buckets",
    "tensorboard-image": "the image of TensorBoard; default: that of the job",
    "volume": "a claim of a volume and where the pods find it, CLAIM:/PATH",
}
#: Options whose values have a required form: the form, and its description in a message.
_FORMS: Final = {
    "network-policy": ("yes|no", "yes or no"),
    "node-selector": (r"([^=,\s]+=[^=,\s]*(,[^=,\s]+=[^=,\s]*)*,?)?", "LABEL=VALUE,LABEL=VALUE"),
    "volume": (r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?:/.*", "CLAIM:/PATH"),
}
_LONGEST_POD = 63
_CONTAINER_FILE = """\
# docker build -t {image} . && docker push {image}
FROM python:3.11-slim
WORKDIR /app
# The packages of the run: for cards of NVIDIA "jax[cuda12]", for TPUs "jax[tpu]".
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
# The process must receive SIGTERM itself: no shell in between.
ENTRYPOINT []
"""


class KubernetesLauncher:
    """Creates the objects of a job with kubectl. The cluster needs the JobSet controller.

    Example:
        >>> plan = KubernetesLauncher().plan(
        ...     JobSpec(command=("python", "train.py"), processes=2, image="registry/train")
        ... )
        >>> [file.name for file in plan.files]
        ['train.yaml', 'Containerfile']
    """

    name = "kubernetes"

    def __init__(self) -> None:
        self._asked = Kept(_ask, _ASK_SECS, patience_secs=_PATIENCE_SECS)

    def plan(self, job: JobSpec) -> Plan:
        """Returns the manifests, and a container file.

        Raises:
            ArgumentError: there is no image, an option is unknown or has a wrong form, the name is unsuitable, or a pod
                would have several processes.
        """
        job.check_options(self.name, OPTIONS)
        job.check_whole(self.name)
        if not job.image:
            raise ArgumentError(
                "Kubernetes needs an image. Name one with --image; the plan's Containerfile builds one."
            )
        longest = _LONGEST_POD - len(f"-trainers-0-{job.processes - 1}-12345")  # the cluster adds the end
        if not re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", job.name) or len(job.name) > longest:
            raise ArgumentError(
                f"A job of {job.processes} processes has a name of at most {longest} characters on Kubernetes, which "
                f"begins with a letter and does not end with a hyphen, given: {job.name!r}."
            )
        for option, (form, words) in _FORMS.items():
            if option in job.options and not re.fullmatch(form, job.options[option]):
                raise ArgumentError(f"The option {option} is {words}, given: {job.options[option]!r}.")
        if job.hosts not in (1, job.processes):
            raise ArgumentError(
                f"{job.processes} processes on {job.hosts} hosts: each pod is one process. Leave out --hosts to let "
                f"the scheduler place them, or set it to {job.processes} to give each its own machine."
            )
        objects = [manifests.headless_service(job), manifests.job_set(job)]
        objects += [manifests.network_policy(job)] if job.options.get("network-policy") != "no" else []
        objects += [manifests.evaluator(job)] if job.evaluator else []
        objects += manifests.tensorboard(job) if job.model_dir else []
        files = (
            PlannedFile(name=f"{job.name}.yaml", text=_yaml(objects)),
            PlannedFile(name="Containerfile", text=_CONTAINER_FILE.format(image=job.image)),
        )
        return Plan(launcher=self.name, job=job, files=files, commands=(("kubectl", "apply", "-f", files[0].name),))

    def submit(self, plan: Plan) -> str:
        """Creates the Secret of the run, then the objects. The id is `NAMESPACE/NAME`, or `NAME`.

        An earlier job of the same name that has ended is removed first, because the cluster would not replace it.

        Raises:
            LaunchError: kubectl is missing, the cluster refuses the objects, or a job of the name has not ended.
        """
        job_id = "/".join(filter(None, (plan.job.options.get("namespace"), plan.job.name)))
        earlier = _ask(job_id)
        if earlier.job_set:
            if not _status(earlier).ended:
                raise LaunchError(
                    f"The job {job_id} has not ended. Choose another --name, or stop it: estimator launch --on "
                    f"kubernetes --stop {job_id}"
                )
            removed = ["jobset", *_named(job_id), "--ignore-not-found", "--cascade=foreground"]
            kubectl("delete", *removed)
            kubectl("delete", "job", *_named(job_id, _EVALUATOR), *removed[-2:])
        secret = json.dumps(manifests.secret_object(plan.job, new_secret()))
        kubectl("apply", "-f", "-", given=secret)
        kubectl("apply", "-f", "-", given=plan.files[0].text)
        self._asked.forget(job_id)
        return job_id

    def status(self, job_id: str) -> JobStatus:
        """Returns the state of a job, from the conditions of its JobSet, and of the Job of its evaluator.

        Raises:
            LaunchError: there is no such JobSet.
        """
        found = self._asked.of(job_id)
        if not found.job_set:
            raise LaunchError(f"The cluster has no JobSet {job_id}.")
        status = _status(found)
        if "Failed" not in _conditions(found.job_set):
            return status
        named = ends(_listed(job_id))
        return replace(status, why="; ".join(filter(None, (named, status.why))))

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Suspends the JobSet. Its pods get SIGTERM and the grace time of the job. Waits `grace_secs` at most."""
        suspended = ("--type=merge", "-p", '{"spec": {"suspend": true}}')
        kubectl("patch", "jobset", *_named(job_id), *suspended)
        if self._asked.of(job_id).evaluator:
            kubectl("patch", "job", *_named(job_id, _EVALUATOR), *suspended)
        deadline = time.monotonic() + grace_secs
        while time.monotonic() < deadline and kubectl("get", "pods", *_pods(job_id), "-o", "name").strip():
            time.sleep(1.0)
        self._asked.forget(job_id)

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Follows the pod of a process, and the pod that replaces it after a restart."""
        log, whole = PodLog(""), True
        while True:
            ended = self.status(job_id).ended
            pod, over = self._newest_pod(job_id, process, unknown=log.pod)
            if pod and pod != log.pod:
                log, whole = PodLog(pod, *_namespace(job_id)), False
            if not whole:
                yield from log.new(over=over)
                whole = over  # the value from before the read, so that no later line is missed
            elif ended:
                return
            time.sleep(_LOOK_SECS)

    def events(self, job_id: str) -> Iterator[str]:
        """Yields which pods have ended or are lost, on which node and how, and the time until the restart."""
        told = Told()
        with WatchedPods(_pods(job_id)) as watched:
            while True:
                ended = self.status(job_id).ended  # queried first, so that everything before the end is reported
                for pod in watched.changes(_LOOK_SECS):
                    yield from (f"estimator launch: {line}" for line in told.new([pod]))
                if ended:  # a restarted watch may not have seen the end yet
                    yield from (f"estimator launch: {line}" for line in told.new(_listed(job_id)))
                    return

    def _newest_pod(self, job_id: str, process: int, *, unknown: str) -> tuple[str, bool]:
        """Returns the newest started pod of a process, and whether it has ended or is gone.

        If the cluster does not answer, it returns `unknown`, and False.
        """
        try:
            told = kubectl("get", "pods", *self._of_process(job_id, process), "-o", "json")
        except LaunchError:
            return unknown, False
        begun = [
            one for one in json.loads(told)["items"] if one.get("status", {}).get("phase") not in (None, "Pending")
        ]
        if not begun:
            return "", True
        newest = max(begun, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
        return newest["metadata"]["name"], newest["status"]["phase"] in ("Succeeded", "Failed")

    def _of_process(self, job_id: str, process: int) -> list[str]:
        """Returns the options that select the pods of a process, or of the evaluator."""
        (trainers,) = self._asked.of(job_id).job_set["spec"]["replicatedJobs"]
        if process < trainers["template"]["spec"]["completions"]:
            return _pods(job_id, f"batch.kubernetes.io/job-completion-index={process}")
        chosen = {"app.kubernetes.io/name": job_id.rpartition("/")[2], "app.kubernetes.io/component": "evaluator"}
        return [f"--selector={','.join(map('='.join, chosen.items()))}", *_namespace(job_id)]


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The objects of a job in the cluster: its JobSet, and the Job of its evaluator. Empty if there is none."""

    job_set: dict[str, Any]
    evaluator: dict[str, Any]


def _ask(job_id: str) -> _Found:
    kinds = {"job_set": ["jobset", *_named(job_id)], "evaluator": ["job", *_named(job_id, _EVALUATOR)]}
    texts = {name: kubectl("get", *words, "--ignore-not-found", "-o", "json") for name, words in kinds.items()}
    return _Found(**{name: json.loads(text) if text.strip() else {} for name, text in texts.items()})


def _status(found: _Found) -> JobStatus:
    status = found.job_set.get("status", {})
    restarts = int(status.get("restarts", 0))
    held, beside = _conditions(found.job_set), _conditions(found.evaluator)
    if "Failed" in held:
        phase = "resumable" if held["Failed"].get("reason") == "ReachedMaxRestarts" else "failed"
        return JobStatus(phase=phase, restarts=restarts, why=_why(held["Failed"]))
    if "Completed" in held and "Failed" in beside:
        return JobStatus(phase="failed", restarts=restarts, why=f"the evaluator: {_why(beside['Failed'])}")
    if "Completed" in held and (not found.evaluator or "Complete" in beside):
        return JobStatus(phase="succeeded", restarts=restarts)
    if found.job_set["spec"].get("suspend"):
        return JobStatus(phase="resumable", restarts=restarts, why="it was stopped")
    active = "Completed" in held or any(one.get("active") for one in status.get("replicatedJobsStatus", []))
    return JobStatus(phase="running" if active else "pending", restarts=restarts)


def _conditions(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the conditions that are true, by name."""
    return {one["type"]: one for one in told.get("status", {}).get("conditions", []) if one["status"] == "True"}


def _why(condition: dict[str, Any]) -> str:
    return f"{condition.get('reason')}: {condition.get('message', '')}"


def _yaml(objects: list[dict[str, Any]]) -> str:
    try:
        import yaml
    except ImportError as error:
        raise LaunchError("Writing manifests needs PyYAML: pip install 'estimator-launchers[kubernetes]'") from error
    return yaml.safe_dump_all(objects, sort_keys=False)


def _namespace(job_id: str) -> list[str]:
    namespace = job_id.rpartition("/")[0]
    return [f"--namespace={namespace}"] if namespace else []


def _named(job_id: str, more: str = "") -> list[str]:
    return [job_id.rpartition("/")[2] + more, *_namespace(job_id)]


def _listed(job_id: str) -> list[dict[str, Any]]:
    """Returns the current pods of a job, or [] without an answer, because the end of the job is known anyway."""
    with suppress(LaunchError):
        pods = kubectl("get", "pods", *_pods(job_id), "-o", "json").strip()
        return json.loads(pods)["items"] if pods else []
    return []


def _pods(job_id: str, *labels: str) -> list[str]:
    chosen = ",".join((f"jobset.sigs.k8s.io/jobset-name={job_id.rpartition('/')[2]}", *labels))
    return [f"--selector={chosen}", *_namespace(job_id)]
