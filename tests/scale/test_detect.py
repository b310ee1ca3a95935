"""Tests of detecting the processes of a run from the variables of schedulers and launchers."""

import importlib.util
import json

import pytest

import estimator_core as ec
from estimator_core._cluster import ClusterInfo, Processes, detect_processes
from estimator_core._cluster.environments import cards_of
from estimator_core.errors import ArgumentError

TF_CONFIG = {"cluster": {"worker": ["b:2", "c:3"], "chief": ["a:1"], "ps": ["d:4"]}}
OMPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}
SLURM = {
    "SLURM_JOB_ID": "5",
    "SLURM_NTASKS": "4",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "2",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "2",
    "SLURM_STEP_TASKS_PER_NODE": "1(x4)",
    "SLURM_STEP_NODELIST": "gpu[07-09,12],cpu1",
}
POD = {"JOB_COMPLETION_INDEX": "1"}
TRIPLE = {"JAX_COORDINATOR_ADDRESS": "h:9", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}
TORCHRUN = {"WORLD_SIZE": "4", "RANK": "3", "MASTER_ADDR": "m", "MASTER_PORT": "29500"}
SAGEMAKER = {"SM_HOSTS": '["algo-2", "algo-1"]', "SM_CURRENT_HOST": "algo-2", "SM_NUM_GPUS": "8"}


def detect(environ: dict[str, str]) -> Processes | None:
    return detect_processes(environ, ClusterInfo.from_environment(environ))


def tf_config(kind: str, index: int) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({**TF_CONFIG, "task": {"type": kind, "index": index}})}


@pytest.fixture(autouse=True)
def without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("environ", "coordinator", "count", "index", "cards"),
    [
        (TRIPLE, "h:9", 2, 1, None),
        (tf_config("chief", 0), "a:1", 3, 0, None),
        (tf_config("worker", 1), "a:1", 3, 2, None),
        (SLURM, "", 4, 2, ()),  # one task a node has all its cards; jax finds the address
        ({**SLURM, "JAX_COORDINATOR_ADDRESS": "x"}, "x:7464", 4, 2, ()),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "2,4,4(x2)", "SLURM_LOCALID": "3"}, "", 4, 2, (3,)),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "3"}, "", 3, 2, ()),  # srun -n3 in an allocation of four
        ({**POD, **TRIPLE}, "h:9", 2, 1, None),
        ({**OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "127.0.0.1:7464", 4, 3, (0,)),
        ({**OMPI, "OMPI_MCA_orte_hnp_uri": "1.0;tcp://10.96.0.1:34911"}, "", 4, 3, None),
        ({**SLURM, **OMPI, "MASTER_ADDR": "m"}, "m:7464", 4, 3, None),  # srun starts mpirun's daemons, not its ranks
        ({"PMI_SIZE": "2", "PMI_RANK": "0", "MASTER_ADDR": "m", "MASTER_PORT": "77"}, "m:77", 2, 0, None),
        ({"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "m"}, "m:7464", 2, 1, ()),
        ({**TORCHRUN, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, "m:29500", 4, 3, (1,)),
        ({**TORCHRUN, **SLURM, "TORCHELASTIC_USE_AGENT_STORE": "True"}, "m:29501", 4, 3, ()),
        (SAGEMAKER, "algo-1:7464", 2, 1, ()),
    ],
)
def test_found(environ: dict[str, str], coordinator: str, count: int, index: int, cards: tuple[int, ...] | None):
    found = detect(environ)
    assert found is not None
    assert (found.coordinator, found.count, found.index) == (coordinator, count, index)
    assert found.local_device_ids == cards
    assert found.is_chief == (index == 0)
    assert (found.method == "deactivate") == bool(coordinator)


@pytest.mark.parametrize(
    ("environ", "index", "count", "cards"),
    [
        ({}, 0, 1, ()),
        ({}, 3, 8, (3,)),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}, 0, 1, ()),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 1, 2, (2, 3)),
        ({"CUDA_VISIBLE_DEVICES": "5"}, 3, 4, ()),  # bound to its own card, which is number 0 here
        ({"CUDA_VISIBLE_DEVICES": "2,3", "SLURM_GPUS_ON_NODE": "4"}, 1, 2, ()),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, 1, 2, (1,)),
        ({"JAX_LOCAL_DEVICE_IDS": "6,7"}, 1, 2, None),
    ],
)
def test_cards(environ: dict[str, str], index: int, count: int, cards: tuple[int, ...] | None):
    assert cards_of(environ, index, count) == cards


@pytest.mark.parametrize(
    "environ",
    [
        {},
        tf_config("evaluator", 0),
        tf_config("ps", 0),
        {"TF_CONFIG": json.dumps({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}})},
        {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_NODELIST": "a[1-4]"},  # a batch script, no step
        {**SLURM, "SLURM_STEP_NUM_TASKS": "1"},  # srun -n1 in an allocation of four
        {"WORLD_SIZE": "8", "RANK": "0"},
        {"JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"},
        {"JAX_NUM_PROCESSES": "1"},
        {**SLURM, "JAX_NUM_PROCESSES": "1"},  # tasks that are separate runs
        {**POD, "JAX_NUM_PROCESSES": "1"},
        {**POD, "TPU_WORKER_HOSTNAMES": "a,b"},  # jax asks GKE
        {**SAGEMAKER, "SM_HOSTS": '["algo-2"]'},
    ],
)
def test_alone(environ: dict[str, str]):
    assert detect(environ) is None


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (OMPI, "Install mpi4py"),
        ({**OMPI, "OMPI_COMM_WORLD_RANK": "four"}, "should be a number"),
        ({**OMPI, "OMPI_COMM_WORLD_RANK": "4", "MASTER_ADDR": "m"}, "process 4 of 4 is not possible"),
        ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, "the address of process 0 is unknown"),
        ({**TRIPLE, "JAX_COORDINATOR_ADDRESS": "h:0"}, "host:port"),
        ({"JAX_NUM_PROCESSES": "2"}, "JAX_PROCESS_ID is not"),
        ({"JAX_PROCESS_ID": "2"}, "JAX_NUM_PROCESSES is not"),
        ({"JAX_COORDINATOR_ADDRESS": "h:9"}, "but not the number of processes"),
        (POD, "belongs to an Indexed Job, but not how many"),
        ({"JOB_COMPLETION_INDEX": "0"}, "belongs to an Indexed Job, but not how many"),
        ({**SLURM, "SLURM_LOCALID": ""}, "SLURM_LOCALID is not set"),
        ({**SAGEMAKER, "SM_CURRENT_HOST": "algo-3"}, "SM_CURRENT_HOST 'algo-3'"),
        ({**SAGEMAKER, "SM_HOSTS": "algo-1,algo-2"}, "should be a JSON list"),
    ],
)
def test_refused(environ: dict[str, str], message: str):
    with pytest.raises(ArgumentError, match=message):
        detect(environ)


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({**TRIPLE, **SLURM}, ("JAX_NUM_PROCESSES", "SLURM_STEP_NUM_TASKS")),
        ({**tf_config("worker", 0), **TRIPLE}, ("JAX_NUM_PROCESSES", "TF_CONFIG")),
        ({**tf_config("worker", 0), **SAGEMAKER}, ("TF_CONFIG", "SM_HOSTS")),
        ({**TORCHRUN, **OMPI, "RANK": "2"}, ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")),
    ],
)
def test_environments_that_disagree_are_refused(environ: dict[str, str], names: tuple[str, str]):
    with pytest.raises(ArgumentError, match=f"{names[0]} says that this is process . of ., {names[1]} that it is"):
        detect(environ)


def test_environments_that_agree_are_one():
    found = detect({**SLURM, "JAX_COORDINATOR_ADDRESS": "h:9", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "2"})
    assert found == Processes("h:9", 4, 2, "JAX_NUM_PROCESSES")


def test_mpi4py_finds_the_address_where_it_is_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "mpi4py")
    found = detect(OMPI)
    assert found is not None
    assert (found.coordinator, found.method) == ("", "mpi4py")


def test_what_jax_is_given():
    told = Processes("", 4, 2, "SLURM_STEP_NUM_TASKS", (), method="slurm").initialize_arguments()
    assert told == {
        "coordinator_address": None,
        "num_processes": 4,
        "process_id": 2,
        "local_device_ids": (),
        "cluster_detection_method": "slurm",
    }


def test_run_config_takes_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAX_NUM_PROCESSES", "2")
    monkeypatch.setenv("JAX_PROCESS_ID", "1")
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "h:9")
    assert ec.RunConfig().process_group == Processes("h:9", 2, 1, "JAX_NUM_PROCESSES")
    assert not ec.RunConfig().is_chief
    assert ec.RunConfig(processes=None).is_chief
    given = Processes("h:9", count=3, index=0)
    assert ec.RunConfig(processes=given).process_group is given
    assert ec.RunConfig(processes=given).is_chief


def test_an_evaluator_beside_processes_that_train_is_alone():
    """The variables that a launcher sets for all processes do not make the evaluator a trainer."""
    assert detect({**tf_config("evaluator", 0), **TRIPLE}) is None
    assert detect({**tf_config("worker", 0), **TRIPLE, "JAX_NUM_PROCESSES": "3"}) is not None
