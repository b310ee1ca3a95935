"""A fake cluster that runs the pods of a manifest as processes of this machine, without DNS or a scheduler.

Variables are expanded as Kubernetes expands them: values, the field of a pod's completion index, keys of a Secret. The
name of a pod's host becomes the name of this machine, because DNS is missing. The controllers follow the manifest. A
pod that fails also fails its Job, by `podFailurePolicy` or `backoffLimit`. The other pods of the Job then receive
SIGTERM and have the grace period. The JobSet fails or starts all pods again, depending on its `failurePolicy`.
`kubectl` is a program that reads and writes the folder of the fake cluster. While the file `away` exists, it cannot
reach the cluster. While the file `cut` exists, streams end.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LOOK_SECS = 0.05
#: A fake kubectl. It takes the arguments of the real one, and works on the folder in its text.
KUBECTL = """#!{python}
import json, os, pathlib, sys, time
folder, words = pathlib.Path({folder!r}), sys.argv[1:]

def pods(): return json.loads((folder / "pods.json").read_text())["items"]
def ended(*names): return any((folder / name).exists() for name in names)
def stamp(number): return f"2026-01-01T00:{{number // 600:02}}:{{number % 600 // 10:02}}.{{number % 10}}00000000Z"

if ended("away"): sys.exit("The connection to the server was refused")
elif words[0] == "apply":
    draft = folder / "draft"
    draft.write_text(sys.stdin.read())
    applied = draft.rename(folder / "applied" / f"{{time.time_ns()}}")
    while applied.exists(): time.sleep(0.02)
elif words[0] == "patch":
    (folder / f"suspended-{{words[1]}}").touch()
    while '"suspend": true' not in (folder / f"{{words[1]}}-{{words[2]}}.json").read_text(): time.sleep(0.02)
elif words[0] == "delete":
    (folder / f"deleted-{{words[1]}}").touch()
    while (folder / f"deleted-{{words[1]}}").exists(): time.sleep(0.05)
elif words[0] == "get" and words[1] in ("jobset", "job"):
    made = folder / f"{{words[1]}}-{{words[2]}}.json"
    print(made.read_text() if made.exists() else "")
elif words[:2] == ["get", "pods"]:
    wanted = dict(pair.split("=") for pair in words[2].partition("=")[2].split(","))
    changes = (folder / "changes.jsonl").open()
    if "--watch" in words: changes.seek(0, 2)
    found = [pod for pod in pods() if wanted.items() <= pod["metadata"]["labels"].items()]
    while "--watch" in words and not ended("away", "cut"):
        for pod in found: print(json.dumps(pod, indent=1), flush=True)
        time.sleep(0.05)
        told = [json.loads(line) for line in changes]
        found = [pod for pod in told if wanted.items() <= pod["metadata"]["labels"].items()]
    if "--watch" in words: sys.exit()
    print(json.dumps({{"items": found}}) if "json" in words else "\\n".join(pod["metadata"]["name"] for pod in found))
elif words[:3] == ["logs", "--follow", "--timestamps"]:
    name = words[3]
    since = next((word.partition("=")[2] for word in words if word.startswith("--since-time=")), "")
    number = 0
    with (folder / "logs" / name).open("rb") as log:
        while not ended("away", "cut"):
            last = not any(pod["metadata"]["name"] == name and pod["status"]["phase"] == "Running" for pod in pods())
            while line := log.readline():
                if not line.endswith(b"\\n") and not last: log.seek(-len(line), 1); break
                if stamp(number) >= since[:19]: os.write(1, stamp(number).encode() + b" " + line)
                number += 1
            if last: break
            time.sleep(0.1)
"""


def expanded(text: str, env: dict[str, str]) -> str:
    """Returns the text as a pod receives it: $(NAME) becomes the value of a known variable, and $$ one sign."""

    def read(found: re.Match[str]) -> str:
        name = found.group(1)
        return "$" if name is None else env.get(name, found.group())

    return re.sub(r"\$\$|\$\(([^)]*)\)", read, text)


class Pod:
    """A pod that runs as a process of this machine.

    Args:
        name: the name of the pod.
        spec: the spec of the pod.
        env: the environment of its container.
        labels: the labels of the pod.
        log: the file for its output.
        workdir: its working directory.
    """

    def __init__(
        self, name: str, spec: dict[str, Any], env: dict[str, str], labels: dict[str, str], log: Path, workdir: Path
    ) -> None:
        (container,) = spec["containers"]
        self.name, self.labels, self._grace = name, labels, spec["terminationGracePeriodSeconds"]
        self._kill_at: float | None = None
        kept = {one: value for one, value in os.environ.items() if not one.startswith(("TF_CONFIG", "XLA_FLAGS"))}
        self._child: subprocess.Popen[bytes] | None = None
        with log.open("wb") as output:
            try:
                self._child = subprocess.Popen(
                    [expanded(word, env) for word in container["command"]],
                    env={**kept, **env},
                    cwd=workdir,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            except OSError as error:
                output.write(f"{error}\n".encode())

    @property
    def status(self) -> int | None:
        """The exit status of the container, or None while it runs."""
        if self._child is None:
            return 128
        code = self._child.poll()
        return code if code is None or code >= 0 else 128 - code

    def delete(self) -> None:
        """Sends SIGTERM, and SIGKILL after the grace period."""
        if self._child is None or self.status is not None:
            return
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace
            self._child.terminate()
        elif time.monotonic() > self._kill_at:
            self._child.kill()

    def kill(self) -> None:
        """Kills the pod at once."""
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)
            self._child.wait()

    def told(self) -> dict[str, Any]:
        """Returns the description of the pod in the API."""
        status = self.status
        phase = "Running" if status is None else "Succeeded" if status == 0 else "Failed"
        state = {"running": {}} if status is None else {"terminated": {"exitCode": status}}
        return {
            "metadata": {"name": self.name, "labels": self.labels, "creationTimestamp": self.name.rpartition("-")[2]},
            "spec": {"nodeName": socket.gethostname()},
            "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
        }


class FakeCluster:
    """Runs the applied manifests: a JobSet, and a Job next to it, one of each at a time.

    Args:
        folder: the folder that kubectl and the pods read and write.
        workdir: the folder of the image, `/app` in the manifest, which all pods share with everything below it.
    """

    def __init__(self, folder: Path, workdir: Path) -> None:
        self._folder, self._workdir, self._secrets = folder, workdir, dict[str, dict[str, str]]()
        self._set: dict[str, Any] | None = None
        self._pods: list[Pod] = []  # of the JobSet
        self._job: dict[str, Any] | None = None
        self._pod: Pod | None = None  # of the Job
        self._restarts, self._retries, self._failed = 0, 0, ""
        self._end, self._job_end = dict[str, str](), dict[str, str]()
        self._made, self._address = 0, ""
        self._told: list[dict[str, Any]] = []
        for name in ("applied", "logs"):
            (folder / name).mkdir(parents=True)
        kubectl = folder / "kubectl"
        kubectl.write_text(KUBECTL.format(python=sys.executable, folder=str(folder)))
        kubectl.chmod(0o755)
        self._write()

    def look(self) -> None:
        """Runs one round of the controllers."""
        self._delete()
        applied = sorted((self._folder / "applied").iterdir())
        for path in applied:
            self._apply(path.read_text())
        if self._set is not None and not self._end:
            self._look_at_set(self._set)
        if self._job is not None and self._pod is not None and not self._job_end:
            self._look_at_job(self._job, self._pod)
        self._write()
        for path in applied:
            path.unlink()

    def close(self) -> None:
        """Ends all pods."""
        for pod in self._all():
            pod.kill()

    def _all(self) -> list[Pod]:
        return [*self._pods, *([self._pod] if self._pod is not None else [])]

    def _apply(self, text: str) -> None:
        """Applies a manifest. Existing objects stay unchanged."""
        import yaml

        for one in yaml.safe_load_all(text):
            if one["kind"] == "Secret":
                self._secrets[one["metadata"]["name"]] = one["stringData"]
            elif one["kind"] == "JobSet" and self._set is None:
                self._set, self._restarts, self._failed, self._end = one, 0, "", {}
                self._start(one)
            elif one["kind"] == "Job" and self._job is None:
                self._job, self._retries, self._job_end = one, one["spec"]["backoffLimit"], {}
                self._pod = self._started(one["spec"], {}, None)

    def _delete(self) -> None:
        for kind in ("jobset", "job"):
            mark = self._folder / f"deleted-{kind}"
            if not mark.exists():
                continue
            pods = self._pods if kind == "jobset" else [self._pod] if self._pod is not None else []
            for pod in pods:
                pod.delete()
            if all(pod.status is not None for pod in pods):
                if kind == "jobset":
                    self._set, self._pods = None, []
                else:
                    self._job, self._pod = None, None
                (self._folder / f"suspended-{kind}").unlink(missing_ok=True)
                for path in self._folder.glob(f"{kind}-*.json"):
                    path.unlink()
                mark.unlink()

    def _start(self, made: dict[str, Any]) -> None:
        (replicated,) = made["spec"]["replicatedJobs"]
        spec, name = replicated["template"]["spec"], made["metadata"]["name"]
        with socket.create_server(("127.0.0.1", 0)) as free:  # each pod has its own address, with all its ports
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        own = {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/restart-attempt": str(self._restarts)}
        self._pods = [self._started(spec, own, index) for index in range(spec["completions"])]

    def _started(self, spec: dict[str, Any], labels: dict[str, str], index: int | None) -> Pod:
        self._made += 1
        name = f"pod-{'x' if index is None else index}-{self._made:04d}"
        (container,) = spec["template"]["spec"]["containers"]
        env: dict[str, str] = {}
        for one in container["env"]:
            env[one["name"]] = expanded(self._value(one, index), env) if "value" in one else self._value(one, index)
        labels = {**spec["template"]["metadata"]["labels"], **labels}
        if index is not None:
            env["JOB_COMPLETION_INDEX"] = labels["batch.kubernetes.io/job-completion-index"] = str(index)
        return Pod(name, spec["template"]["spec"], env, labels, self._folder / "logs" / name, self._workdir)

    def _value(self, variable: dict[str, Any], index: int | None) -> str:
        if "value" in variable:
            return re.sub(r"[a-z0-9-]+-trainers-0-0\.[a-z0-9-]+:\d+", self._address, variable["value"])
        source = variable["valueFrom"]
        if "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
            return str(index)
        return self._secrets[source["secretKeyRef"]["name"]][source["secretKeyRef"]["key"]]

    def _look_at_set(self, made: dict[str, Any]) -> None:
        spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]
        ended = [pod.status for pod in self._pods]
        suspended = (self._folder / "suspended-jobset").exists()
        bad = next((status for status in ended if status), None)
        if bad is not None and not self._failed and not suspended:
            self._failed = _reason(spec, bad)
        if self._failed or suspended:
            for pod in self._pods:
                pod.delete()
        if None in ended:
            return
        if suspended:
            self._pods = []
        elif not self._failed:
            self._end = {"type": "Completed", "status": "True"}
        elif any(self._failed in rule["onJobFailureReasons"] for rule in made["spec"]["failurePolicy"]["rules"]):
            self._end = {"type": "Failed", "status": "True", "reason": "FailJobSetFailurePolicyAction"}
            self._end["message"] = "jobset failed due to one or more job failures"
        elif self._restarts >= made["spec"]["failurePolicy"]["maxRestarts"]:
            self._end = {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts", "message": "no more"}
        else:
            self._restarts, self._failed = self._restarts + 1, ""
            self._start(made)

    def _look_at_job(self, made: dict[str, Any], pod: Pod) -> None:
        if (self._folder / "suspended-job").exists():
            pod.delete()
        elif pod.status == 0:
            self._job_end = {"type": "Complete", "status": "True"}
        elif pod.status and self._retries:
            self._retries -= 1
            self._pod = self._started(made["spec"], {}, None)
        elif pod.status:
            self._job_end = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}

    def _write(self) -> None:
        told = [pod.told() for pod in self._all()]
        with (self._folder / "changes.jsonl").open("a") as changes:
            changes.write("".join(json.dumps(pod) + "\n" for pod in told if pod not in self._told))
        self._told = told
        self._replace("pods.json", {"items": told})
        if self._set is not None:
            active = sum(pod.status is None for pod in self._pods)
            status = {"restarts": self._restarts, "conditions": [self._end] if self._end else []}
            status["replicatedJobsStatus"] = [{"name": "trainers", "active": active}]
            spec = {**self._set["spec"], "suspend": (self._folder / "suspended-jobset").exists()}
            self._replace(f"jobset-{self._set['metadata']['name']}.json", {"spec": spec, "status": status})
        if self._job is not None:
            spec = {**self._job["spec"], "suspend": (self._folder / "suspended-job").exists()}
            told = {"spec": spec, "status": {"conditions": [self._job_end] if self._job_end else []}}
            self._replace(f"job-{self._job['metadata']['name']}.json", told)

    def _replace(self, name: str, told: dict[str, Any]) -> None:
        draft = self._folder / "answer"
        draft.write_text(json.dumps(told))
        draft.replace(self._folder / name)


def _reason(spec: dict[str, Any], status: int) -> str:
    """Returns the reason why a Job with a pod of this status has failed."""
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        if status in rule.get("onExitCodes", {}).get("values", []):
            return "PodFailurePolicy"
    assert spec["backoffLimit"] == 0
    return "BackoffLimitExceeded"


@contextmanager
def cluster(folder: Path, workdir: Path | None = None) -> Iterator[Path]:
    """Runs a fake cluster whose controllers work in this context. Yields the folder that contains `kubectl`."""
    made, ended = FakeCluster(folder, workdir or Path.cwd()), threading.Event()
    errors: list[BaseException] = []

    def control() -> None:
        try:
            while not ended.wait(_LOOK_SECS):
                made.look()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=control)
    thread.start()
    try:
        yield folder
    finally:
        ended.set()
        thread.join()
        made.close()
    assert not errors, errors
