"""Which processes belong together, as schedulers and launchers say it."""

import json

import pytest

import estimator_core as ec
from estimator_core._cluster import ClusterInfo, Processes, detect_processes
from estimator_core.errors import ArgumentError

TF_CONFIG = {"cluster": {"worker": ["b:2", "c:3"], "chief": ["a:1"], "ps": ["d:4"]}}
OMPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}
SLURM = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2", "SLURM_STEP_NODELIST": "gpu[07-09,12],cpu1"}
POD = {"JOB_COMPLETION_INDEX": "1", "JAX_PROCESS_COUNT": "4"}


def detect(environ: dict[str, str]) -> Processes | None:
    return detect_processes(environ, ClusterInfo.from_environment(environ))


def tf_config(kind: str, index: int) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({**TF_CONFIG, "task": {"type": kind, "index": index}})}


@pytest.mark.parametrize(
    ("environ", "coordinator", "count", "index"),
    [
        ({"JAX_COORDINATOR_ADDRESS": "h:9", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, "h:9", 2, 1),
        (tf_config("chief", 0), "a:1", 3, 0),
        (tf_config("worker", 1), "a:1", 3, 2),
        ({**SLURM, "SLURM_JOB_ID": "5"}, f"gpu07:{60000 % 2**12 + 2**13 + 5}", 4, 2),
        ({**SLURM, "JAX_COORDINATOR_ADDRESS": "x"}, "x:7464", 4, 2),
        ({**POD, "JAX_COORDINATOR_ADDRESS": "j-0-0.j:88"}, "j-0-0.j:88", 4, 1),
        (
            {**POD, "JOB_INDEX": "1", "PROCESSES_IN_JOB": "2", "JOBSET_NAME": "run", "REPLICATED_JOB_NAME": "slice"},
            "run-slice-0-0.run:7464",
            4,
            3,
        ),
        ({**OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "127.0.0.1:7464", 4, 3),
        ({"PMI_SIZE": "2", "PMI_RANK": "0", "MASTER_ADDR": "m", "MASTER_PORT": "77"}, "m:77", 2, 0),
        ({"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "m"}, "m:7464", 2, 1),
    ],
)
def test_found(environ: dict[str, str], coordinator: str, count: int, index: int):
    found = detect(environ)
    assert found is not None
    assert (found.coordinator, found.count, found.index) == (coordinator, count, index)
    assert found.is_chief == (index == 0)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        tf_config("evaluator", 0),
        tf_config("ps", 0),
        {"TF_CONFIG": json.dumps({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}})},
        {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_NODELIST": "a[1-4]"},  # a batch script, no step
        {"WORLD_SIZE": "8", "RANK": "0"},
        {"JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"},
    ],
)
def test_alone(environ: dict[str, str]):
    assert detect(environ) is None


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (OMPI, "nothing tells where process 0 is"),
        ({**OMPI, "OMPI_COMM_WORLD_RANK": "four"}, "should be a number"),
        ({**OMPI, "OMPI_COMM_WORLD_RANK": "4", "MASTER_ADDR": "m"}, "process 4 of 4 cannot be"),
        ({**POD, "JOB_INDEX": "1", "JAX_COORDINATOR_ADDRESS": "h"}, "PROCESSES_IN_JOB"),
        ({"JAX_COORDINATOR_ADDRESS": "h:0", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, "host:port"),
    ],
)
def test_refused(environ: dict[str, str], message: str):
    with pytest.raises(ArgumentError, match=message):
        detect(environ)


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
    """What a launcher gives to all of them does not make it one of those that train."""
    launched = {"JAX_COORDINATOR_ADDRESS": "h:9", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}
    assert detect({**tf_config("evaluator", 0), **launched}) is None
    assert detect({**tf_config("worker", 0), **launched}) is not None
