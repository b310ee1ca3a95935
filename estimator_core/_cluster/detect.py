"""Finds the processes of a run in the environment variables of schedulers and launchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from estimator_core._cluster.info import ClusterInfo, TaskType
from estimator_core._cluster.processes import Processes
from estimator_core.errors import ArgumentError

#: One of these is set whenever the environment describes a cluster. A process without any is alone, which is the common
#: case, and reads no other variable.
_MARKS: Final = frozenset(
    (
        "JAX_COORDINATOR_ADDRESS",
        "JAX_NUM_PROCESSES",
        "JAX_PROCESS_ID",
        "JOB_COMPLETION_INDEX",
        "MV2_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_SIZE",
        "SLURM_STEP_NUM_TASKS",
        "SM_HOSTS",
        "TF_CONFIG",
        "WORLD_SIZE",
    )
)


def detect_processes(environ: Mapping[str, str], cluster: ClusterInfo) -> Processes | None:
    """Returns the processes that this one trains with; None if it is alone, or if only jax knows them (TPU pods, Ray).

    The function reads JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID (set by `estimator launch`),
    TF_CONFIG, and the variables of torchrun, SageMaker, a Slurm step and MPI. JAX_NUM_PROCESSES=1 means that this
    process is alone.

    Args:
        environ: the environment.
        cluster: the cluster that its TF_CONFIG describes.

    Raises:
        ArgumentError: variables contradict each other, or name several processes without the rest.

    Example:
        >>> told = {"JAX_COORDINATOR_ADDRESS": "n3:7000", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}
        >>> detect_processes(told, ClusterInfo()).count
        2
    """
    if cluster.task_type in (TaskType.EVALUATOR, TaskType.PS) or _MARKS.isdisjoint(environ):
        return None
    from estimator_core._cluster import environments as of

    if of.number(environ, "JAX_NUM_PROCESSES") == 1:
        return None
    # mpirun and torchrun start their processes inside the job of a scheduler, so these processes inherit its variables.
    inner = [of.from_torchrun(environ), of.from_mpi(environ)]
    outer = [] if any(inner) else [of.from_sagemaker(environ), of.from_slurm(environ)]
    told = [of.from_variables(environ), of.from_tf_config(cluster), *inner, *outer]
    found = [processes for processes in told if processes is not None and processes.count > 1]
    if not found:
        _refuse_silence(environ)
        return None
    _refuse_conflict(found)
    return found[0]


def _refuse_conflict(found: Sequence[Processes]) -> None:
    first = found[0]
    for other in found[1:]:
        if (other.count, other.index) != (first.count, first.index):
            raise ArgumentError(
                f"{first.source} says that this is process {first.index} of {first.count}, {other.source} that it is "
                f"process {other.index} of {other.count}. Unset the variables of the wrong one, or pass "
                "RunConfig(processes=ec.Processes(...)); JAX_NUM_PROCESSES=1 makes each process a separate run."
            )


def _refuse_silence(environ: Mapping[str, str]) -> None:
    """Refuses variables that imply other processes but not their number, because each process would be a separate run
    in the same model_dir.
    """
    if environ.get("JAX_COORDINATOR_ADDRESS"):
        raise ArgumentError(
            "JAX_COORDINATOR_ADDRESS is set, but not the number of processes and the index of this one. Set "
            "JAX_NUM_PROCESSES and JAX_PROCESS_ID, or JAX_NUM_PROCESSES=1 for a process that trains alone."
        )
    # On TPUs, GKE passes this information to jax itself.
    if environ.get("JOB_COMPLETION_INDEX") and not environ.get("TPU_WORKER_HOSTNAMES"):
        raise ArgumentError(
            "Kubernetes: JOB_COMPLETION_INDEX shows that this pod belongs to an Indexed Job, but not how many pods "
            "train together. Set JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID in the manifest, as "
            "`estimator launch --on kubernetes --dry-run` writes it, or JAX_NUM_PROCESSES=1 if each pod is a "
            "separate run."
        )
