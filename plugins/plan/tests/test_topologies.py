"""Tests of the values of `--topology` and `--mesh`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core.errors import ArgumentError
from estimator_core.plugins import Plugins
from estimator_plan import find_topology, parse_mesh, parse_topology
from estimator_plan.topologies import Wanted
from plugins.plan.tests.lent_cpus import LentCPUs


@pytest.mark.parametrize(
    ("text", "family", "shape", "slices"),
    [
        ("v5e:4x4", "v5e", (4, 4), 1),
        ("v5p:4x4x4", "v5p", (4, 4, 4), 1),
        ("h100x8", "h100", (8,), 1),
        ("h100:2x8", "h100", (2, 8), 1),
        ("h100:8", "h100", (8,), 1),
        ("tpu7x:2x2x1", "tpu7x", (2, 2, 1), 1),
        ("tpu7xx4", "tpu7x", (4,), 1),
        ("2*v5e:16x16", "v5e", (16, 16), 2),
        ("12*v6ex8", "v6e", (8,), 12),
    ],
)
def test_topologies(text, family, shape, slices):
    assert parse_topology(text) == Wanted(family=family, shape=shape, slices=slices)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v5e",
        "v5e:",
        "v5e:4x",
        "v5e:x4",
        "8xh100",
        "v5e:0x4",
        "v5e 4x4",
        "V5E:4x4",
        "v5e:-1",
        "0*v5e:4x4",
        "*v5e:4x4",
        "2v5e:4x4",
    ],
)
def test_other_topologies_are_refused_with_examples(text):
    with pytest.raises(ArgumentError, match="v5e:4x4"):
        parse_topology(text)


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


@given(NAMES, st.lists(st.integers(1, 999), min_size=1, max_size=3), st.integers(1, 99))
def test_every_family_and_shape_reads_back(family, shape, slices):
    text = f"{slices}*{family}:{'x'.join(map(str, shape))}"
    assert parse_topology(text) == Wanted(family=family, shape=tuple(shape), slices=slices)


@given(st.dictionaries(NAMES, st.integers(1, 512) | st.just(-1), min_size=1, max_size=4))
def test_every_mesh_reads_back(mesh):
    parsed = parse_mesh(",".join(f"{axis}={size}" for axis, size in mesh.items()))
    assert list(parsed.items()) == list(mesh.items())


@pytest.mark.parametrize(
    "text", ["", "data", "data=", "data=0", "data=-2", "data=8,data=4", "data=8,,model=2", "data:8", "4=4"]
)
def test_other_meshes_are_refused_with_an_example(text):
    with pytest.raises(ArgumentError, match="data=-1,model=4"):
        parse_mesh(text)


BACKENDS = {"cpu": Plugins(autoload=False).get("backend", "cpu"), "lent_cpus": LentCPUs}


def test_the_backend_that_knows_the_family_is_found():
    found = find_topology("cpux8", BACKENDS.__getitem__, list(BACKENDS))
    assert isinstance(found.backend, LentCPUs)
    assert found.topology.device_count == 8


def test_a_family_of_two_backends_is_given_to_neither():
    both = {**BACKENDS, "other_cpus": type("OtherCPUs", (LentCPUs,), {})}
    with pytest.raises(ArgumentError, match="Several backends know the topology 'cpux8'"):
        find_topology("cpux8", both.__getitem__, list(both))


def test_an_unknown_family_names_the_known_ones_and_the_packages():
    with pytest.raises(ArgumentError, match=r"'cpu', 'lost'.*estimator-backends-tpu.*estimator-backends-gpu"):
        find_topology("v5e:2x4", BACKENDS.__getitem__, list(BACKENDS))
    with pytest.raises(ArgumentError, match="Known families: none"):
        find_topology("v5e:2x4", BACKENDS.__getitem__, ["cpu"])


def test_slices_of_devices_that_a_network_joins_already_are_refused():
    with pytest.raises(ArgumentError, match=r"cpux8 has no slices.*h100:2x8"):
        find_topology("2*cpux8", BACKENDS.__getitem__, list(BACKENDS))
