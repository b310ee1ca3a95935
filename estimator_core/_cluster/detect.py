"""Finding the processes of a run in what schedulers and launchers put into the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from estimator_core._cluster.info import ClusterInfo, TaskType
from estimator_core._cluster.processes import Processes
from estimator_core.errors import ArgumentError

#: Where no port is given.
DEFAULT_PORT: Final = 7464
_Environ = Mapping[str, str]


def detect_processes(environ: _Environ, cluster: ClusterInfo) -> Processes | None:
    """The processes this one trains with; None where it is alone.

    The first of these that tells of more than one process counts: the variables JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES and JAX_PROCESS_ID (set by `estimator launch`), TF_CONFIG, Kubernetes (an Indexed Job or a
    JobSet), a SLURM step, MPI and its kin.

    Args:
        environ: the environment.
        cluster: what TF_CONFIG says in it.

    Raises:
        ArgumentError: variables contradict each other, or leave out the address of process 0.

    Example:
        >>> slurm = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_STEP_NODELIST": "n[3-4]"}
        >>> detect_processes({**slurm, "SLURM_JOB_ID": "70001"}, ClusterInfo())
        Processes(coordinator='n3:11217', count=2, index=1, source='SLURM')
    """
    if cluster.task_type in (TaskType.EVALUATOR, TaskType.PS):
        return None
    finders: tuple[Callable[[], Processes | None], ...] = (
        lambda: _from_variables(environ),
        lambda: _from_tf_config(cluster),
        lambda: _from_kubernetes(environ),
        lambda: _from_slurm(environ),
        lambda: _from_mpi(environ),
    )
    found = next((processes for find in finders if (processes := find()) is not None), None)
    return None if found is None or found.count == 1 else found


def _from_variables(environ: _Environ) -> Processes | None:
    count, index = _number(environ, "JAX_NUM_PROCESSES"), _number(environ, "JAX_PROCESS_ID")
    if count is None or index is None:
        return None
    if count == 1:
        return None
    return Processes(_coordinator(environ, "JAX_NUM_PROCESSES"), count, index, "JAX_NUM_PROCESSES")


def _from_tf_config(cluster: ClusterInfo) -> Processes | None:
    """Chief first, then the others; parameter servers and the evaluator do not train."""
    if not cluster.cluster or cluster.num_worker_replicas < 2 or cluster.global_id_in_cluster is None:
        return None
    chief = TaskType.MASTER if TaskType.MASTER in cluster.cluster else TaskType.CHIEF
    order = [chief, *sorted(role for role in cluster.cluster if role not in (chief, TaskType.PS, TaskType.EVALUATOR))]
    addresses = [(role, i, address) for role in order for i, address in enumerate(cluster.cluster[role])]
    index = next(n for n, (role, i, _) in enumerate(addresses) if (role, i) == (cluster.task_type, cluster.task_id))
    return Processes(_with_port(addresses[0][2]), len(addresses), index, "TF_CONFIG")


def _from_kubernetes(environ: _Environ) -> Processes | None:
    """An Indexed Job, or a JobSet of several: JAX_PROCESS_COUNT pods, PROCESSES_IN_JOB of them in each job."""
    within = _number(environ, "JOB_COMPLETION_INDEX")
    count = _number(environ, "JAX_PROCESS_COUNT")
    if within is None or count is None or count == 1:
        return None
    job, size = _number(environ, "JOB_INDEX") or 0, _number(environ, "PROCESSES_IN_JOB") or 0
    if job and not size:
        raise ArgumentError(
            "Kubernetes: JOB_INDEX is set, but PROCESSES_IN_JOB, the number of pods in a job, is not. Set it."
        )
    coordinator = _coordinator(environ, "JAX_PROCESS_COUNT", jobset=_jobset_host(environ))
    return Processes(coordinator, count, job * size + within, "Kubernetes")


def _jobset_host(environ: _Environ) -> str | None:
    name, replicated = environ.get("JOBSET_NAME"), environ.get("REPLICATED_JOB_NAME")
    return f"{name}-{replicated}-0-0.{name}" if name and replicated else None


def _from_slurm(environ: _Environ) -> Processes | None:
    """Inside a step only (srun): a batch script or an allocation is one process."""
    count, index = _number(environ, "SLURM_STEP_NUM_TASKS"), _number(environ, "SLURM_PROCID")
    nodes = environ.get("SLURM_STEP_NODELIST")
    if count is None or index is None or nodes is None or count == 1:
        return None
    # Jobs that share a node need ports that differ; all processes of one must choose the same.
    port = 60000 % 2**12 + 2**13 + (_number(environ, "SLURM_JOB_ID") or 0) % 2**12
    given = environ.get("JAX_COORDINATOR_ADDRESS")
    return Processes(_with_port(given) if given else f"{_first_host(nodes)}:{port}", count, index, "SLURM")


def _first_host(nodes: str) -> str:
    """The first of a list as SLURM writes it: `a[03-07,9],b1` starts with a03."""
    match = re.match(r"([^,\[]+)(?:\[([^\]]+)\])?", nodes)
    if match is None:
        raise ArgumentError(f"SLURM_STEP_NODELIST cannot be read: {nodes!r}.")
    prefix, numbers = match.groups()
    return prefix if numbers is None else prefix + re.split(r"[-,]", numbers)[0]


def _from_mpi(environ: _Environ) -> Processes | None:
    """Open MPI, MPICH and Intel MPI, MVAPICH, and the variables that torchrun and Kubeflow set."""
    for count_name, index_name, local in (
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"),
        ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
        ("WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"),
    ):
        count, index = _number(environ, count_name), _number(environ, index_name)
        if count is None or index is None or count == 1:
            continue
        if count_name == "WORLD_SIZE" and "MASTER_ADDR" not in environ:
            continue  # too common a name to mean anything by itself
        one_host = _number(environ, local) == count
        return Processes(_coordinator(environ, count_name, one_host=one_host), count, index, count_name)
    return None


def _coordinator(environ: _Environ, source: str, *, jobset: str | None = None, one_host: bool = False) -> str:
    given = environ.get("JAX_COORDINATOR_ADDRESS")
    if given:
        return _with_port(given)
    if environ.get("MASTER_ADDR"):
        return f"{environ['MASTER_ADDR']}:{environ.get('MASTER_PORT', DEFAULT_PORT)}"
    if jobset is not None:
        return f"{jobset}:{DEFAULT_PORT}"
    if one_host:
        return f"127.0.0.1:{DEFAULT_PORT}"
    raise ArgumentError(
        f"{source} tells of several processes, but nothing tells where process 0 is. Set JAX_COORDINATOR_ADDRESS to "
        "its host:port in all of them, give RunConfig(processes=ec.Processes(...)), or RunConfig(processes=None) to "
        "train alone."
    )


def _with_port(address: str) -> str:
    return address if re.search(r":\d+$", address) else f"{address}:{DEFAULT_PORT}"


def _number(environ: _Environ, name: str) -> int | None:
    text = environ.get(name)
    if text is None or text == "":
        return None
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"The environment variable {name} should be a number, but is {text!r}.") from None
