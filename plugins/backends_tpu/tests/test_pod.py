"""The pod that a machine belongs to, as told by the environment or by the metadata of the machine."""

import pytest

from estimator_backends_tpu import find_pod
from estimator_core.errors import ArgumentError

GKE = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "w-0.svc,w-1.svc", "TPU_ACCELERATOR_TYPE": "v5litepod-8"}
SLICES = {**GKE, "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1"}
COORDINATOR = {"MEGASCALE_COORDINATOR_ADDRESS": "first-0.svc:8080"}
MACHINE = {
    "agent-worker-number": "2",
    "worker-network-endpoints": "a:8470:10.0.0.1,b:8470:10.0.0.2,c:8470:10.0.0.3",
    "accelerator-type": "v5p-24",
}


def nothing(name):
    return None


def test_alone():
    assert find_pod({}, nothing) is None


def test_gke_tells_by_the_environment():
    pod = find_pod(GKE, nothing)
    assert (pod.process_index, pod.process_count, pod.coordinator) == (1, 2, "w-0.svc:8476")
    assert pod.accelerator == "v5litepod-8"


def test_several_slices_count_on():
    pod = find_pod({**SLICES, **COORDINATOR}, nothing)
    assert (pod.process_index, pod.process_count, pod.coordinator) == (3, 4, "first-0.svc:8476")


def test_machines_of_google_cloud_tell_by_their_metadata():
    pod = find_pod({}, MACHINE.get)
    assert (pod.process_index, pod.process_count, pod.coordinator) == (2, 3, "10.0.0.1:8476")
    assert pod.accelerator == "v5p-24"


def test_the_environment_wins_over_the_metadata():
    assert find_pod(GKE, MACHINE.get).hostnames == ("w-0.svc", "w-1.svc")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({**GKE, "TPU_WORKER_ID": "2"}, "below 2"),
        ({**GKE, "TPU_WORKER_ID": "first"}, "TPU_WORKER_ID is 'first'"),
        ({**SLICES, **COORDINATOR, "MEGASCALE_SLICE_ID": "2"}, "MEGASCALE_NUM_SLICES is 2"),
        ({**SLICES, **COORDINATOR, "MEGASCALE_NUM_SLICES": "two"}, "must be a number"),
        (SLICES, "MEGASCALE_COORDINATOR_ADDRESS"),
    ],
)
def test_what_does_not_fit_together_is_refused(told, words):
    with pytest.raises(ArgumentError, match=words):
        find_pod(told, nothing)
