"""The declarations of estimator-cluster for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Component, Option

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> Sequence[Component]:
    """Returns the coordinator, which the core uses unless another is named."""
    return [
        Component(
            kind="coordinator",
            name="jax",
            target="estimator_cluster.connecting:connect",
            summary="Processes of jax.distributed, over its coordination service.",
        )
    ]


def estimator_options() -> Sequence[Option]:
    """Returns the options for the times that processes wait for each other."""
    return [
        Option(name="heartbeat_secs", type=int, default=20, help="Silence after which a process counts as lost."),
        Option(name="start_secs", type=int, default=300, help="How long the processes wait for all to be started."),
        Option(name="grace_secs", type=int, default=10, help="Time to end after another process was lost."),
    ]
