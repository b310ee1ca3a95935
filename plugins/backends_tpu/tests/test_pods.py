"""Tests of pods: jax finds their machines, and we interpret the answers of its cluster environments."""

import jax
import pytest
from jax._src import clusters
from jax._src.clusters import cloud_tpu_cluster, cluster

from estimator_backends_tpu import TPUBackend
from estimator_backends_tpu import backend as module
from estimator_core.errors import BackendUnavailableError

GKE = {
    "TPU_WORKER_ID": "1",
    "TPU_WORKER_HOSTNAMES": "localhost,b",
    "MEGASCALE_COORDINATOR_ADDRESS": "localhost:8080",
    "MEGASCALE_NUM_SLICES": "2",
    "MEGASCALE_SLICE_ID": "1",
}
TPU_ENV = {name: value for name, value in GKE.items() if name.startswith("MEGASCALE")}
METADATA = {
    "agent-worker-number": "1",
    "worker-network-endpoints": "a:8:localhost,b:8:h2",
    "tpu-env": "".join(f"{name}: '{value}'\n" for name, value in TPU_ENV.items()),
}


@pytest.fixture
def on_a_tpu_machine(monkeypatch: pytest.MonkeyPatch):
    """Simulates a machine of a pod, and returns the arguments of jax's detection."""
    for name in (*GKE, "TPU_SKIP_MDS_QUERY", "TPU_PROCESS_ADDRESSES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cloud_tpu_cluster, "running_in_cloud_tpu_vm", True)
    monkeypatch.setattr(cluster, "running_in_cloud_tpu_vm", True)
    found = []

    def initialize(**given):
        assert given == {}
        found.append(clusters.ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, 2))
        if found[-1][0] is None:
            raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    monkeypatch.setattr(module, "_jax_has_started", lambda: False)
    return found


def test_gke_tells_of_two_slices(on_a_tpu_machine, monkeypatch):
    for name, value in GKE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cloud_tpu_cluster, "get_metadata", lambda name: ("", 404))  # asked first
    TPUBackend().initialize()
    assert on_a_tpu_machine == [("localhost:8482", 4, 3, None)]


def test_two_slices_that_only_the_metadata_tells_of_are_not_split(on_a_tpu_machine, monkeypatch):
    monkeypatch.setattr(cloud_tpu_cluster, "get_metadata", lambda name: (METADATA[name], 200))
    TPUBackend().initialize()
    assert on_a_tpu_machine == [("localhost:8482", 4, 3, None)]


def test_a_machine_of_which_nothing_is_told_is_alone(on_a_tpu_machine, monkeypatch):
    monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "1")
    TPUBackend().initialize()
    assert [found[0] for found in on_a_tpu_machine] == [None]


def test_a_pod_that_cannot_be_connected_is_no_machine_alone(on_a_tpu_machine, monkeypatch):
    def unreachable(name):
        raise RuntimeError("Failed to recognize coordinator address w-0")

    monkeypatch.setattr(cloud_tpu_cluster, "get_metadata", unreachable)
    with pytest.raises(BackendUnavailableError, match="Failed to recognize coordinator address w-0"):
        TPUBackend().initialize()


def test_what_the_program_has_connected_stays(on_a_tpu_machine, monkeypatch):
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    TPUBackend().initialize()
    assert on_a_tpu_machine == []


def test_what_jax_says_of_a_machine_alone_is_known():
    """This text distinguishes an absent pod from one that cannot be reached."""
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared as a whole
        jax._src.distributed.State().initialize(cluster_detection_method="deactivate")
    assert str(raised.value) == module._NOTHING_TOLD
