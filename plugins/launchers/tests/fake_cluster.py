"""What a cluster does with a manifest, as far as one machine can: its pods as processes. No DNS, no scheduler.

Variables are expanded as Kubernetes does it: values, the field of a pod's completion index, keys of a Secret. The name
of a pod's host becomes this machine, since there is no DNS.
"""

import os
import re
import subprocess
from typing import Any


def pods(objects: list[dict[str, Any]], secrets: dict[str, dict[str, str]]) -> list[tuple[list[str], dict[str, str]]]:
    """Command and environment of each pod of the JobSets and Jobs, in order."""
    found = []
    for one in objects:
        if one["kind"] == "JobSet":
            for replicated in one["spec"]["replicatedJobs"]:
                found += _of_job(replicated["template"]["spec"], secrets)
        elif one["kind"] == "Job":
            found += _of_job(one["spec"], secrets)
    return found


def _of_job(spec: dict[str, Any], secrets: dict[str, dict[str, str]]) -> list[tuple[list[str], dict[str, str]]]:
    (container,) = spec["template"]["spec"]["containers"]
    indexed = spec.get("completionMode") == "Indexed"
    made = []
    for index in range(spec.get("completions", 1)):
        env = {"JOB_COMPLETION_INDEX": str(index)} if indexed else {}
        for variable in container["env"]:
            env[variable["name"]] = _value(variable, index, secrets)
        made.append((container["command"], env))
    return made


def _value(variable: dict[str, Any], index: int, secrets: dict[str, dict[str, str]]) -> str:
    if "value" in variable:
        return re.sub(r"[a-z0-9-]+-trainers-0-0\.[a-z0-9-]+", "127.0.0.1", variable["value"])
    source = variable["valueFrom"]
    if "fieldRef" in source:
        assert source["fieldRef"]["fieldPath"] == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        return str(index)
    return secrets[source["secretKeyRef"]["name"]][source["secretKeyRef"]["key"]]


def started(objects: list[dict[str, Any]], secrets: dict[str, dict[str, str]]) -> "list[subprocess.Popen[str]]":
    """Starts the pods together."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TF_CONFIG", "XLA_FLAGS"))}
    return [
        subprocess.Popen(command, env={**kept, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command, env in pods(objects, secrets)
    ]


def run(objects: list[dict[str, Any]], secrets: dict[str, dict[str, str]], timeout: float) -> list[tuple[int, str]]:
    """Starts the pods together; the status of each and what it wrote."""
    children = started(objects, secrets)
    said = [child.communicate(timeout=timeout)[0] for child in children]
    return [(child.returncode, text) for child, text in zip(children, said, strict=True)]
