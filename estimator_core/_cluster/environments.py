"""Reads the variables that each scheduler and launcher puts into the environment of a process."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from typing import Final

from estimator_core._cluster.info import ClusterInfo, TaskType
from estimator_core._cluster.processes import Processes
from estimator_core.errors import ArgumentError

#: The port if none is given.
DEFAULT_PORT: Final = 7464
_ADDRESS = "JAX_COORDINATOR_ADDRESS"
#: The variables of Open MPI, of MPICH and Intel MPI, and of MVAPICH: number of processes, index, and both within the
#: machine.
_MPI = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
)
#: The variables that jax's own Slurm detection reads, besides the number of tasks.
_SLURM_NEEDS = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
_Environ = Mapping[str, str]


def from_variables(environ: _Environ) -> Processes | None:
    """Reads JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID, set by `estimator launch` or a person."""
    names = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
    count, index = (number(environ, name) for name in names)
    if count is None and index is None:
        return None
    if count is None or index is None:
        there, missing = names if index is None else names[::-1]
        raise ArgumentError(
            f"{there} is set, but {missing} is not: both belong to a process that trains with others. Set both and "
            f"{_ADDRESS}, or only JAX_NUM_PROCESSES=1 for a process that trains alone."
        )
    return Processes(_told_address(environ, "JAX_NUM_PROCESSES"), count, index, "JAX_NUM_PROCESSES")


def from_tf_config(cluster: ClusterInfo) -> Processes | None:
    """Reads TF_CONFIG. The chief is first, then the others. Parameter servers and the evaluator do not train."""
    if not cluster.cluster or cluster.num_worker_replicas < 2 or cluster.global_id_in_cluster is None:
        return None
    chief = TaskType.MASTER if TaskType.MASTER in cluster.cluster else TaskType.CHIEF
    order = [chief, *sorted(role for role in cluster.cluster if role not in (chief, TaskType.PS, TaskType.EVALUATOR))]
    addresses = [(role, i, address) for role in order for i, address in enumerate(cluster.cluster[role])]
    index = next(n for n, (role, i, _) in enumerate(addresses) if (role, i) == (cluster.task_type, cluster.task_id))
    return Processes(_with_port(addresses[0][2]), len(addresses), index, "TF_CONFIG")


def from_torchrun(environ: _Environ) -> Processes | None:
    """Reads WORLD_SIZE, RANK and MASTER_ADDR, as torchrun and Kubeflow set them. They count only with an address."""
    count, index = number(environ, "WORLD_SIZE"), number(environ, "RANK")
    if count is None or index is None or not environ.get("MASTER_ADDR"):
        return None
    port = number(environ, "MASTER_PORT") or DEFAULT_PORT
    # The agent of torchrun itself listens on that port.
    port += environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address = environ.get(_ADDRESS) or f"{environ['MASTER_ADDR']}:{port}"
    cards = cards_of(environ, number(environ, "LOCAL_RANK") or 0, number(environ, "LOCAL_WORLD_SIZE") or 1)
    return Processes(_with_port(address), count, index, "WORLD_SIZE", cards)


def from_sagemaker(environ: _Environ) -> Processes | None:
    """Reads SM_HOSTS and SM_CURRENT_HOST: one process per machine, with all its cards."""
    text, here = environ.get("SM_HOSTS"), environ.get("SM_CURRENT_HOST")
    if not text or not here:
        return None
    try:
        hosts = sorted(json.loads(text))
        index = hosts.index(here)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"SageMaker: SM_HOSTS should be a JSON list of names with SM_CURRENT_HOST in it, but SM_HOSTS is {text!r} "
            f"and SM_CURRENT_HOST {here!r}."
        ) from error
    return Processes(
        _with_port(environ.get(_ADDRESS) or hosts[0]), len(hosts), index, "SM_HOSTS", cards_of(environ, 0, 1)
    )


def from_slurm(environ: _Environ) -> Processes | None:
    """Reads the variables of a step that srun starts.

    A batch script or an allocation is one process. jax finds the address of process 0.

    The number of tasks of the step counts, not that of the allocation.
    """
    count, index = number(environ, "SLURM_STEP_NUM_TASKS"), number(environ, "SLURM_PROCID")
    if count is None or index is None or count == 1:
        return None
    missing = [name for name in _SLURM_NEEDS if not environ.get(name)]
    if missing:
        raise ArgumentError(
            f"Slurm: SLURM_STEP_NUM_TASKS names {count} tasks, but {', '.join(missing)} is not set, which srun sets. "
            "Start the program by srun, and pass on its whole environment."
        )
    cards = cards_of(environ, number(environ, "SLURM_LOCALID") or 0, _tasks_here(environ, count))
    given = environ.get(_ADDRESS)
    if given:
        return Processes(_with_port(given), count, index, "SLURM_STEP_NUM_TASKS", cards)
    return Processes("", count, index, "SLURM_STEP_NUM_TASKS", cards, method="slurm")


def from_mpi(environ: _Environ) -> Processes | None:
    """Reads the variables of Open MPI, MPICH, Intel MPI and MVAPICH. jax finds the address of process 0 if it can."""
    for count_name, index_name, local_count, local_index in _MPI:
        count, index = number(environ, count_name), number(environ, index_name)
        if count is None or index is None or count == 1:
            continue
        here = number(environ, local_count)
        cards = None if here is None else cards_of(environ, number(environ, local_index) or 0, here)
        if environ.get(_ADDRESS) or environ.get("MASTER_ADDR"):
            return Processes(_told_address(environ, count_name), count, index, count_name, cards)
        if "OMPI_MCA_orte_hnp_uri" in environ:
            return Processes("", count, index, count_name, cards, method="ompi")
        if importlib.util.find_spec("mpi4py") is not None:
            return Processes("", count, index, count_name, cards, method="mpi4py")
        if here == count:
            return Processes(f"127.0.0.1:{DEFAULT_PORT}", count, index, count_name, cards)
        raise ArgumentError(
            f"{count_name} names {count} processes, but the address of process 0 is unknown. Install mpi4py, which "
            f"finds it, or set {_ADDRESS} to its host:port in all of them; RunConfig(processes=None) trains alone."
        )
    return None


def cards_of(environ: _Environ, index: int, count: int) -> tuple[int, ...] | None:
    """Returns the cards of one of several processes of a machine.

    Args:
        environ: the environment.
        index: the index of the process within its machine.
        count: the number of processes of this run on the machine.

    Returns:
        The numbers of the cards. (): every card that the process sees. None: the cards in JAX_LOCAL_DEVICE_IDS.

    Example:
        >>> cards_of({}, 1, 2), cards_of({}, 0, 1), cards_of({"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 1, 2)
        ((1,), (), (2, 3))
    """
    if environ.get("JAX_LOCAL_DEVICE_IDS"):
        return None
    seen = len([card for card in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if card.strip()])
    of_machine = environ.get("SLURM_GPUS_ON_NODE", "")
    bound = 0 < seen < count or (of_machine.isdigit() and 0 < seen < int(of_machine))
    if count == 1 or bound:  # a scheduler has assigned cards to this process
        return ()
    share = seen // count if seen % count == 0 else 0
    return tuple(range(index * share, (index + 1) * share)) if share else (index,)


def number(environ: _Environ, name: str) -> int | None:
    """Returns a variable as an integer; None if it is not set."""
    text = environ.get(name)
    if text is None or text == "":
        return None
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"The environment variable {name} should be a number, but is {text!r}.") from None


def _tasks_here(environ: _Environ, count: int) -> int:
    """Returns the number of tasks of the step on this node.

    `2(x3),1` means two on each of three nodes and one on the fourth.
    """
    nodes: list[int] = []
    for part in environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            return count
        nodes += [int(match[1])] * int(match[2] or 1)
    place = number(environ, "SLURM_NODEID") or 0
    return nodes[place] if place < len(nodes) else count


def _told_address(environ: _Environ, source: str) -> str:
    given = environ.get(_ADDRESS)
    if given:
        return _with_port(given)
    if environ.get("MASTER_ADDR"):
        return f"{environ['MASTER_ADDR']}:{environ.get('MASTER_PORT', DEFAULT_PORT)}"
    raise ArgumentError(
        f"{source} names several processes, but the address of process 0 is unknown. Set {_ADDRESS} to its host:port "
        "in all of them, give RunConfig(processes=ec.Processes(...)), or RunConfig(processes=None) to train alone."
    )


def _with_port(address: str) -> str:
    return address if re.search(r":\d+$", address) else f"{address}:{DEFAULT_PORT}"
