"""The backend suite passes the CPU backend and catches broken ones."""

import pytest

from estimator_core._backends.contract import CPUBackend
from estimator_testing import BackendSuite


class TestCPUBackend(BackendSuite):
    def make(self):
        return CPUBackend()


@pytest.mark.slow
def test_broken_backends_are_caught(assert_each_is_caught):
    assert_each_is_caught("backends")
