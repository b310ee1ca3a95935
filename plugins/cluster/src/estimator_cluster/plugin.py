"""What estimator-cluster declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Component, Option

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> Sequence[Component]:
    """The coordinator that the core takes unless another is named."""
    return [
        Component(
            kind="coordinator",
            name="jax",
            target="estimator_cluster.connecting:connect",
            summary="Processes of jax.distributed, over its coordination service.",
        )
    ]


def estimator_options() -> Sequence[Option]:
    """How long processes wait for each other."""
    return [
        Option(name="heartbeat_secs", type=int, default=20, help="Silence after which a process counts as lost."),
        Option(name="start_secs", type=int, default=300, help="How long the processes wait for all to be started."),
        Option(name="grace_secs", type=int, default=10, help="Time to end in after another process was lost."),
    ]
