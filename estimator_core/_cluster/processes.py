"""The processes that train one model together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from estimator_core.errors import ArgumentError


@dataclass(frozen=True)
class Processes:
    """This process among those that train one model together; process 0 is the chief.

    Args:
        coordinator: `host:port` of process 0, which all others can reach; the port must be free there. "" where
            `method` finds it, or where "jax.distributed", the source, has connected them already.
        count: how many processes there are.
        index: which of them this is, from 0.
        source: what told so, for messages.
        local_device_ids: the cards of this machine that this process uses; (): all. None: what JAX_LOCAL_DEVICE_IDS
            says, else all, or by `method` one a process.
        method: the cluster environment of jax that finds the coordinator, such as "slurm".

    Raises:
        ArgumentError: a count or an index that cannot be.

    Example:
        >>> Processes("10.0.0.1:7070", count=4, index=2).is_chief
        False
    """

    coordinator: str
    count: int
    index: int
    source: str = "RunConfig"
    local_device_ids: tuple[int, ...] | None = None
    method: str = "deactivate"

    def __post_init__(self) -> None:
        if self.count < 1 or not 0 <= self.index < self.count:
            raise ArgumentError(
                f"{self.source}: process {self.index} of {self.count} cannot be: indices go from 0 to count - 1."
            )
        if not self.coordinator and (self.method != "deactivate" or self.source == "jax.distributed"):
            return
        host, colon, port = self.coordinator.rpartition(":")
        if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
            raise ArgumentError(
                f"{self.source}: the coordinator must be host:port of process 0, given: {self.coordinator!r}."
            )

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints, events and exports."""
        return self.index == 0

    def initialize_arguments(self) -> dict[str, Any]:
        """What `jax.distributed.initialize` is given.

        Example:
            >>> Processes("10.0.0.1:7070", count=4, index=2, local_device_ids=(2,)).initialize_arguments()["process_id"]
            2
        """
        return {
            "coordinator_address": self.coordinator or None,
            "num_processes": self.count,
            "process_id": self.index,
            "local_device_ids": self.local_device_ids,
            "cluster_detection_method": self.method,
        }
