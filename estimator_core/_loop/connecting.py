"""The coordinator that takes the role in a run."""

from __future__ import annotations

from collections.abc import Callable

from estimator_core._cluster import Processes
from estimator_core._plugins import Plugins
from estimator_core._roles import ROLES
from estimator_core.config import RunConfig
from estimator_core.coordinator import Coordinator


def connected(config: RunConfig, plugins: Plugins, processes: Processes | None) -> Coordinator:
    """Connects this process with the others of its run.

    Args:
        config: says which component takes the role.
        plugins: where it is looked up.
        processes: of the run; None: those that jax knows already.
    """
    name = str(config.components.get("coordinator", ROLES["coordinator"].default))
    connect: Callable[..., Coordinator] = plugins.get("coordinator", name)
    return connect(processes, plugins.options("coordinator", name))
