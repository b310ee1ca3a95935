"""Tests of topologies to compile for without a card."""

import pytest

from estimator_backends_gpu import FIGURES, GPUBackend
from estimator_backends_gpu.probe import installed_version
from estimator_backends_gpu.targets import TARGETS
from estimator_core.backends import TopologyBackend
from estimator_core.errors import ArgumentError, BackendUnavailableError


def test_it_lends_devices():
    assert isinstance(GPUBackend(), TopologyBackend)


@pytest.mark.parametrize("family", sorted(TARGETS))
def test_every_family_has_figures_that_agree_with_its_target(family):
    figures = FIGURES[TARGETS[family].kind]
    assert figures.memory_bandwidth == pytest.approx(TARGETS[family].memory_bandwidth, rel=0.01)
    assert figures.memory_bytes == pytest.approx(TARGETS[family].memory_bytes, rel=0.08)
    assert figures.peak_flops["bfloat16"] == pytest.approx(2 * figures.peak_flops["float32"], rel=0.05)


@pytest.mark.parametrize(("shape", "devices", "hosts"), [((8,), 8, 1), ((1,), 1, 1), ((2, 8), 16, 2), ((4, 4), 16, 4)])
def test_shapes_are_cards_or_machines_by_cards(shape, devices, hosts):
    topology = GPUBackend().topology("h100", shape)
    assert (topology.device_count, topology.host_count) == (devices, hosts)


@pytest.mark.parametrize("shape", [(16,), (2, 9), (2, 2, 2)])
def test_other_shapes_are_refused_with_examples(shape):
    with pytest.raises(ArgumentError, match="h100x8"):
        GPUBackend().topology("h100", shape)


def test_usable_memory_is_the_share_that_jax_takes(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    assert GPUBackend().topology("h100", (8,)).figures.memory_bytes == 40 * 2**30
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION")
    assert GPUBackend().topology("h100", (8,)).figures.memory_bytes == int(0.9 * 80 * 2**30)


@pytest.mark.skipif(installed_version("jax-cuda13-plugin") is not None, reason="jax's CUDA plugin is installed")
def test_without_the_plugin_the_cure_is_named():
    backend = GPUBackend()
    with pytest.raises(BackendUnavailableError, match=r"estimator-backends-gpu\[cuda\]"):
        backend.topology_devices(backend.topology("h100", (8,)))
