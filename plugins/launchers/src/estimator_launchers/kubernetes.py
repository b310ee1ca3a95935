"""The launcher of Kubernetes: a JobSet with a headless Service, an evaluator and TensorBoard; kubectl submits them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from estimator_core.errors import ArgumentError
from estimator_launchers import manifests
from estimator_launchers.contract import JobSpec, JobStatus, Plan, PlannedFile
from estimator_launchers.environment import new_secret
from estimator_launchers.errors import LaunchError

OPTIONS: Final[Mapping[str, str]] = {
    "cards": "the resource of a card, for example nvidia.com/gpu; --devices says how many a process has",
    "cpu": "processors of each process, for example 8",
    "memory": "memory of each process, for example 64Gi",
    "namespace": "where the objects are made",
    "node-selector": "labels of the nodes, a=b,c=d",
    "service-account": "as which the pods run, for access to buckets",
    "tensorboard-image": "the image of TensorBoard; default: that of the job",
    "volume": "a claim of a volume and where the pods find it, CLAIM:/PATH",
}
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
    """Makes the objects of a job with kubectl; the JobSet controller must be in the cluster.

    Example:
        >>> plan = KubernetesLauncher().plan(
        ...     JobSpec(command=("python", "train.py"), processes=2, image="registry/train")
        ... )
        >>> [file.name for file in plan.files]
        ['train.yaml', 'Containerfile']
    """

    name = "kubernetes"

    def plan(self, job: JobSpec) -> Plan:
        """The manifests, and a container file.

        Raises:
            ArgumentError: there is no image, an option is unknown, or several processes a pod are wanted.
        """
        job.check_options(self.name, OPTIONS)
        job.check_whole(self.name)
        if not job.image:
            raise ArgumentError("Kubernetes runs images. Give one with --image; the plan's Containerfile shows how.")
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?:/.*", job.options.get("volume", "a:/")):
            raise ArgumentError(f"The option volume is CLAIM:/PATH, given: {job.options['volume']!r}.")
        if job.hosts not in (1, job.processes):
            raise ArgumentError(
                f"{job.processes} processes on {job.hosts} hosts: a pod is one process. Leave --hosts out, and the "
                f"scheduler places them, or give {job.processes}, and each gets a machine of its own."
            )
        objects = [manifests.headless_service(job), manifests.job_set(job)]
        objects += [manifests.evaluator(job)] if job.evaluator else []
        objects += manifests.tensorboard(job) if job.model_dir else []
        files = (
            PlannedFile(name=f"{job.name}.yaml", text=_yaml(objects)),
            PlannedFile(name="Containerfile", text=_CONTAINER_FILE.format(image=job.image)),
        )
        return Plan(launcher=self.name, job=job, files=files, commands=(("kubectl", "apply", "-f", files[0].name),))

    def submit(self, plan: Plan) -> str:
        """Makes the Secret of the run, then the objects; the id is `NAMESPACE/NAME`, or `NAME`.

        Raises:
            LaunchError: kubectl is missing, or the cluster refuses the objects.
        """
        secret = json.dumps(manifests.secret_object(plan.job, new_secret()))
        _kubectl("apply", "-f", "-", given=secret)
        _kubectl("apply", "-f", "-", given=plan.files[0].text)
        return "/".join(filter(None, (plan.job.options.get("namespace"), plan.job.name)))

    def status(self, job_id: str) -> JobStatus:
        """The state of a job, from the conditions of its JobSet.

        Raises:
            LaunchError: there is no such JobSet.
        """
        told: dict[str, Any] = json.loads(_kubectl("get", "jobset", *_named(job_id), "-o", "json"))
        status = told.get("status", {})
        restarts = int(status.get("restarts", 0))
        held = {one["type"]: one for one in status.get("conditions", []) if one["status"] == "True"}
        if "Completed" in held:
            return JobStatus(phase="succeeded", restarts=restarts)
        if "Failed" in held:
            phase = "resumable" if held["Failed"].get("reason") == "ReachedMaxRestarts" else "failed"
            why = f"{held['Failed'].get('reason')}: {held['Failed'].get('message', '')}"
            return JobStatus(phase=phase, restarts=restarts, why=why)
        if told["spec"].get("suspend"):
            return JobStatus(phase="resumable", restarts=restarts, why="it was stopped")
        active = any(one.get("active") for one in status.get("replicatedJobsStatus", []))
        return JobStatus(phase="running" if active else "pending", restarts=restarts)

    def stop(self, job_id: str, grace_secs: float) -> None:
        """Suspends the JobSet: its pods get SIGTERM and the grace of the job. Waits for them up to `grace_secs`."""
        _kubectl("patch", "jobset", *_named(job_id), "--type=merge", "-p", '{"spec": {"suspend": true}}')
        deadline = time.monotonic() + grace_secs
        while time.monotonic() < deadline and _kubectl("get", "pods", *_pods(job_id), "-o", "name").strip():
            time.sleep(1.0)

    def logs(self, job_id: str, process: int) -> Iterator[str]:
        """Follows the pod of a process, and the pod that replaces it after a restart."""
        index = f"batch.kubernetes.io/job-completion-index={process}"
        seen = ""
        while True:
            ended = self.status(job_id).ended
            pod = _newest(_kubectl("get", "pods", *_pods(job_id, index), "-o", "json"))
            if pod and pod != seen:
                seen = pod
                yield from _follow("logs", "--follow", pod, *_namespace(job_id))
            elif ended:
                return
            time.sleep(1.0)


def _yaml(objects: list[dict[str, Any]]) -> str:
    try:
        import yaml
    except ImportError as error:
        raise LaunchError("Manifests are written with PyYAML: pip install 'estimator-launchers[kubernetes]'") from error
    return yaml.safe_dump_all(objects, sort_keys=False)


def _namespace(job_id: str) -> list[str]:
    namespace = job_id.rpartition("/")[0]
    return [f"--namespace={namespace}"] if namespace else []


def _named(job_id: str) -> list[str]:
    return [job_id.rpartition("/")[2], *_namespace(job_id)]


def _pods(job_id: str, *labels: str) -> list[str]:
    chosen = ",".join((f"jobset.sigs.k8s.io/jobset-name={job_id.rpartition('/')[2]}", *labels))
    return [f"--selector={chosen}", *_namespace(job_id)]


def _newest(text: str) -> str:
    """The name of the newest pod that has begun."""
    pods = [one for one in json.loads(text)["items"] if one.get("status", {}).get("phase") not in (None, "Pending")]
    made = sorted((one["metadata"]["creationTimestamp"], one["metadata"]["name"]) for one in pods)
    return made[-1][1] if made else ""


def _kubectl(*arguments: str, given: str | None = None) -> str:
    if shutil.which("kubectl") is None:
        raise LaunchError("There is no kubectl here. Print the manifests with --dry-run and apply them where it is.")
    done = subprocess.run(["kubectl", *arguments], input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LaunchError(f"kubectl {arguments[0]} fails: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _follow(*arguments: str) -> Iterator[str]:
    with subprocess.Popen(["kubectl", *arguments], stdout=subprocess.PIPE, text=True, errors="replace") as child:
        assert child.stdout is not None
        for line in child.stdout:
            yield line.rstrip("\n")
