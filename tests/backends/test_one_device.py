"""Tests of the part of a mesh for which programs for other machines are lowered. They need no device."""

from types import SimpleNamespace

from estimator_core._backends import Devices
from estimator_core.config import RunConfig
from tests.backends.test_mesh import chips


def devices_of(mesh, there=chips(4, 4)):  # noqa: B008 - nothing changes them
    backend = SimpleNamespace(devices=lambda: there, initialize=lambda: None)
    return Devices(RunConfig(mesh=mesh, processes=None), lambda config: backend)


def test_one_device_has_the_axes_of_the_mesh():
    devices = devices_of({"data": 2, "model": -1})
    assert devices.alone() is devices
    own = devices.single()
    assert own.placement is devices.single().placement
    assert dict(own.placement.mesh.shape) == {"data": 1, "model": 1}
    assert own.placement.mesh.devices.flat[0] == chips(4, 4)[0]
    assert own.apart
    assert own.config is devices.config


def test_a_mesh_of_one_device_is_itself():
    devices = devices_of({"data": 1, "model": 1}, chips(2, 2))
    assert devices.single() is devices
