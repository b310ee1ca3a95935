"""The backend keeps the contract of backends; tests that need a card are skipped, by name, where there is none."""

from estimator_backends_gpu import GPUBackend
from estimator_core.testing import BackendSuite


class TestGPUBackend(BackendSuite):
    def make(self) -> GPUBackend:
        return GPUBackend()
