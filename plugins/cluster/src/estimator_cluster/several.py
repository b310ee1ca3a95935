"""The functions that the core calls if there are several processes, or their devices form one mesh."""

from __future__ import annotations

from jax.sharding import Mesh

from estimator_cluster.calls import announce as announce
from estimator_cluster.calls import together as together
from estimator_cluster.shared_decisions import Interruption, SharedDecisions, SharedHooks
from estimator_cluster.shared_feed import SharedFeed as SharedFeed
from estimator_cluster.shared_feed import step_flags
from estimator_core.agreement import Decisions
from estimator_core.coordinator import Coordinator


def decisions(preemption: Interruption, processes: Coordinator, mesh: Mesh) -> Decisions:
    """Returns the decisions of a training call.

    Args:
        preemption: the object that records signals to this process.
        processes: the processes that decide together.
        mesh: their devices.
    """
    return SharedDecisions(preemption, processes, step_flags(mesh))


def decisions_of_hooks(processes: Coordinator, mesh: Mesh) -> Decisions:
    """Returns the decisions for the hooks of an evaluation or of predictions.

    Args:
        processes: the processes that decide together.
        mesh: their devices.
    """
    return SharedHooks(processes, step_flags(mesh))
