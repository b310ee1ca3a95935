"""The suite for device backends."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core.backends import Available, Backend, Unavailable
from estimator_testing.suite import Suite

_IMPORT = """
import importlib
importlib.import_module({module!r})
import jax
jax.config.update("jax_num_cpu_devices", 3)  # refused once any device has been initialised
"""


class BackendSuite(Suite):
    """Proves that a backend reports correctly whether it can be used, and that arrays live on its devices.

    If the backend says that it is unavailable, the tests that need its devices are skipped with its reason.

    Example:
        >>> from estimator_core.plugins import Plugins
        >>> class TestCPUBackend(BackendSuite):
        ...     def make(self):
        ...         return Plugins().get("backend", "cpu")()
    """

    def make(self) -> Backend:
        """Returns the backend. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def test_is_a_backend(self) -> None:
        """It has the methods of Backend and a name other than "auto"."""
        backend = self.make()
        assert isinstance(backend, Backend), f"{backend!r} lacks a method of Backend"
        assert backend.name.islower()
        assert backend.name != "auto"

    def test_importing_it_touches_no_device(self) -> None:
        """Its import initialises no device: `initialize` must come first, and `auto` imports every backend."""
        module = type(self.make()).__module__
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", _IMPORT.format(module=module)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"importing {module} asks jax for its devices, or fails:\n{done.stderr}"

    def test_probe_answers(self) -> None:
        """`probe` never raises, returns the same value twice, and returns a reason or a summary in words."""
        first, second = self.make().probe(), self.make().probe()
        assert isinstance(first, Available | Unavailable), f"probe() gave {first!r}"
        assert first == second, "probe() answers differently the second time"
        text = first.summary if isinstance(first, Available) else first.reason
        assert text.strip(), "probe() returns no words to show to the user"

    def test_can_be_initialized_twice(self) -> None:
        """`initialize` can be called again, because every Estimator of a process calls it."""
        backend = self._available()
        devices = list(backend.devices())
        backend.initialize()
        backend.initialize()
        assert list(self._available().devices()) == devices

    def test_devices_work(self) -> None:
        """It has at least one device, lists each once, and each computes."""
        devices = list(self._available().devices())
        assert devices, "it is available, yet has no devices"
        assert len(set(devices)) == len(devices), f"devices are named twice: {devices}"
        for device in devices:
            assert isinstance(device, jax.Device), f"{device!r} is not a jax.Device"
            result = jnp.arange(4, dtype=jnp.float32, device=device) * 2
            assert result.devices() == {device}
            np.testing.assert_array_equal(result, [0, 2, 4, 6])

    def test_devices_are_of_one_kind(self) -> None:
        """Its devices share one platform, because a mesh cannot span several."""
        platforms = {device.platform for device in self._available().devices()}
        assert len(platforms) == 1, f"its devices are of the platforms {sorted(platforms)}"

    def test_figures_of_devices(self) -> None:
        """Peak speed and memory are positive or unknown, even for an unknown device kind."""
        backend = self.make()
        kinds = ["a device that does not exist"]
        if isinstance(backend.probe(), Available):
            kinds += [device.device_kind for device in backend.devices()]
        for kind in kinds:
            memory = backend.memory_bytes(kind)
            assert memory is None or (isinstance(memory, int) and memory > 0), f"memory_bytes({kind!r}) is {memory!r}"
            for dtype in ("float32", "bfloat16", "a dtype that does not exist"):
                peak = backend.peak_flops(kind, dtype)
                assert peak is None or peak > 0, f"peak_flops({kind!r}, {dtype!r}) is {peak!r}"
        assert backend.peak_flops(kinds[0], "float32") is None, "it knows the speed of a device that does not exist"
        assert backend.memory_bytes(kinds[0]) is None, "it knows the memory of a device that does not exist"

    def _available(self) -> Backend:
        backend = self.make()
        probed = backend.probe()
        if isinstance(probed, Unavailable):
            pytest.skip(f"backend {backend.name} is not available here: {probed.reason}")
        backend.initialize()
        return backend
