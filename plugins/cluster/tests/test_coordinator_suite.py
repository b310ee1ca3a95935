"""The coordinator of this package keeps the contract."""

from typing import ClassVar

from estimator_core.testing import CoordinatorSuite


class TestJax(CoordinatorSuite):
    connects = "estimator_cluster.connecting:connect"
    options: ClassVar = {"heartbeat_secs": 4, "start_secs": 60, "grace_secs": 3}
    silence = 12.0
