"""The backend keeps the contract of backends. Tests that need a TPU are skipped by name on machines without one."""

from estimator_backends_tpu import TPUBackend
from estimator_core.testing import BackendSuite


class TestTPUBackend(BackendSuite):
    def make(self) -> TPUBackend:
        return TPUBackend()
