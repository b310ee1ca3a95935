"""The backend keeps the contract of backends. Tests that need a card are skipped by name on machines without one."""

from estimator_backends_gpu import GPUBackend
from estimator_core.testing import BackendSuite


class TestGPUBackend(BackendSuite):
    def make(self) -> GPUBackend:
        return GPUBackend()
