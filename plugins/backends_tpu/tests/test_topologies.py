"""Tests of slices to compile for without a TPU."""

import pytest

from estimator_backends_tpu import FIGURES, TPUBackend
from estimator_backends_tpu.probe import libtpu_installed
from estimator_backends_tpu.topologies import FAMILIES
from estimator_core.backends import TopologyBackend
from estimator_core.errors import ArgumentError, BackendUnavailableError


def test_it_lends_devices():
    assert isinstance(TPUBackend(), TopologyBackend)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_has_figures(family):
    assert FIGURES[FAMILIES[family].kind].memory_bytes > 0


@pytest.mark.parametrize(
    ("family", "shape", "devices", "hosts"),
    [
        ("v5e", (1, 1), 1, 1),
        ("v5e", (2, 4), 8, 2),
        ("v5e", (16, 16), 256, 64),
        ("v6e", (4, 4), 16, 4),
        ("v5p", (2, 2, 1), 4, 1),
        ("v5p", (4, 4, 4), 64, 16),
    ],
)
def test_slices_that_exist(family, shape, devices, hosts):
    topology = TPUBackend().topology(family, shape)
    assert (topology.device_count, topology.host_count) == (devices, hosts)
    assert topology.figures.kind == FAMILIES[family].kind


@pytest.mark.parametrize(
    ("family", "shape", "words"),
    [
        ("v5e", (3, 5), "2x4, 4x4"),
        ("v5e", (4, 2), "2x4"),
        ("v5e", (2, 2, 1), "2x4"),
        ("v5p", (4, 4), "three sides"),
        ("v5p", (3, 4, 4), "multiple of 4"),
        ("v6e", (32, 32), "16x16"),
    ],
)
def test_slices_that_do_not_exist_are_refused_with_those_that_do(family, shape, words):
    with pytest.raises(ArgumentError, match=words):
        TPUBackend().topology(family, shape)


@pytest.mark.skipif(libtpu_installed(), reason="libtpu is installed")
def test_without_libtpu_the_cure_is_named():
    backend = TPUBackend()
    with pytest.raises(BackendUnavailableError, match=r"estimator-backends-tpu\[tpu\]"):
        backend.topology_devices(backend.topology("v5e", (2, 4)))
