"""Backends that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

import itertools

import jax

from estimator_core._backends.contract import CPUBackend
from estimator_core.backends import Available, Unavailable
from estimator_testing import BackendSuite

ASKED_AT_IMPORT = jax.devices()


class Suite(BackendSuite):
    fails = ()
    Broken: type[CPUBackend] = CPUBackend

    def make(self):
        return self.Broken()


class TestTakesTheNameAuto(Suite):
    fails = ("test_is_a_backend",)

    class Broken(CPUBackend):
        name = "auto"


class TestWithoutMemory(Suite):
    fails = ("test_is_a_backend",)

    class Broken:
        name = "partial"
        probe = CPUBackend.probe


class TestAsksForDevicesAtImport(Suite):
    """This file asks for the devices at import."""

    fails = ("test_importing_it_touches_no_device",)

    class Broken(CPUBackend):
        pass


class TestProbeRaises(Suite):
    fails = ("test_probe_answers",)

    class Broken(CPUBackend):
        def probe(self):
            raise OSError("no driver")


class TestProbeSaysYes(Suite):
    fails = ("test_probe_answers",)

    class Broken(CPUBackend):
        def probe(self):
            return True


class TestProbeChangesItsMind(Suite):
    fails = ("test_probe_answers",)

    class Broken(CPUBackend):
        priorities = itertools.count()

        def probe(self):
            return Available(priority=next(self.priorities), summary="CPU")


class TestProbeGivesNoReason(Suite):
    fails = ("test_probe_answers",)

    class Broken(CPUBackend):
        def probe(self):
            return Unavailable(reason="")


class TestInitializesOnce(Suite):
    fails = ("test_can_be_initialized_twice",)

    class Broken(CPUBackend):
        done = False

        def initialize(self):
            assert not self.done
            self.done = True


class TestHasNoDevices(Suite):
    fails = ("test_devices_work",)

    class Broken(CPUBackend):
        def devices(self):
            return []


class TestNamesDevicesTwice(Suite):
    fails = ("test_devices_work",)

    class Broken(CPUBackend):
        def devices(self):
            return [*super().devices(), *super().devices()]


class TestDevicesByName(Suite):
    fails = ("test_devices_work",)

    class Broken(CPUBackend):
        def devices(self):
            return [str(device) for device in jax.devices("cpu")]


class TestMixesPlatforms(Suite):
    fails = ("test_devices_are_of_one_kind",)

    class Broken(CPUBackend):
        def devices(self):
            class Other:
                platform = "other"

            return [*super().devices(), Other()]


class TestKnowsEveryDevice(Suite):
    fails = ("test_figures_of_devices",)

    class Broken(CPUBackend):
        def peak_flops(self, device_kind, dtype):
            return 1e12


class TestForgetsUnknownKinds(Suite):
    fails = ("test_figures_of_devices",)

    class Broken(CPUBackend):
        def memory_bytes(self, device_kind):
            return {"cpu": 2**30}[device_kind]
