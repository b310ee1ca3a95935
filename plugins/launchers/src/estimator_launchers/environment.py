"""The environment of each process that a launcher starts itself."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from estimator_launchers.contract import JobSpec

#: The variable with a secret that only the processes of one job know. They sign their messages with it.
SECRET: Final = "ESTIMATOR_RUN_SECRET"


def new_secret() -> str:
    """Returns 256 random bits as text."""
    return secrets.token_hex(32)


def trainer_environment(job: JobSpec, index: int, address: str, *, cards: int = 0) -> dict[str, str]:
    """Returns the variables through which a process finds the others.

    Args:
        job: the job.
        index: the index of the process.
        address: `host:port` of process 0.
        cards: the number of GPUs of the machine, which its processes share.

    Example:
        >>> told = trainer_environment(JobSpec(command=("x",), processes=2), 1, "h:1")
        >>> told["JAX_PROCESS_ID"], told["JAX_NUM_PROCESSES"]
        ('1', '2')
    """
    told = {"JAX_NUM_PROCESSES": str(job.processes)}
    if job.processes > 1:
        told |= {"JAX_COORDINATOR_ADDRESS": address, "JAX_PROCESS_ID": str(index)}
    if job.evaluator:
        told["TF_CONFIG"] = role(job, "chief" if index == 0 else "worker", max(0, index - 1), address)
    if cards:
        share = job.devices or max(1, cards // job.processes_per_host)
        first = index % job.processes_per_host * share
        told["JAX_LOCAL_DEVICE_IDS"] = ",".join(str(card) for card in range(first, first + share))
    return {**told, **virtual_devices(job)}


def evaluator_environment(job: JobSpec, *, cards: int = 0) -> dict[str, str]:
    """Returns the variables of the evaluator. On a machine whose GPUs train, it computes on the CPU."""
    told = {"TF_CONFIG": role(job, "evaluator", 0, "127.0.0.1:1")}
    return {**told, **({"JAX_PLATFORMS": "cpu"} if cards else {})}


def role(job: JobSpec, kind: str, index: int, address: str) -> str:
    """Returns TF_CONFIG of a process of the job. The chief is process 0, and the others are workers."""
    cluster = {"chief": [address]}
    if job.processes > 1:
        cluster["worker"] = [f"worker-{place}:1" for place in range(1, job.processes)]
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def virtual_devices(job: JobSpec, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables for XLA: on a machine without accelerators, as many CPU devices as the job wants."""
    if job.devices is None:
        return {}
    flags = job.env.get("XLA_FLAGS", base.get("XLA_FLAGS", ""))
    return {"XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count={job.devices}".strip()}


def cards_here(environ: Mapping[str, str] = os.environ, driver: str = "/proc/driver/nvidia/gpus") -> int:
    """Returns the number of GPUs of this machine that its processes may use, according to its driver.

    Example:
        >>> cards_here({"CUDA_VISIBLE_DEVICES": "1,3"}), cards_here({}, driver="/no/such/folder")
        (2, 0)
    """
    if "CUDA_VISIBLE_DEVICES" in environ:
        return len([card for card in environ["CUDA_VISIBLE_DEVICES"].split(",") if card.strip()])
    return len(list(Path(driver).glob("*")))
