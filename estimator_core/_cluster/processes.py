"""The processes that train one model, and the messages between them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from estimator_core.coordinator import Coordinator
from estimator_core.errors import ArgumentError


@dataclass(frozen=True)
class Processes:
    """This process as one of the processes that train a model together. Process 0 is the chief.

    Args:
        coordinator: `host:port` of process 0, which all others can reach. The port must be free there. "" if `method`
            finds it, or if the source is "jax.distributed", which has already connected the processes.
        count: the number of processes.
        index: the index of this process, from 0.
        source: the source of this information, for messages.
        local_device_ids: the cards of this machine that this process uses. (): all. None: those in
            JAX_LOCAL_DEVICE_IDS, or else all, or with some values of `method` one per process.
        method: the cluster environment of jax that finds the coordinator, such as "slurm".

    Raises:
        ArgumentError: the count or the index is invalid.

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
                f"{self.source}: process {self.index} of {self.count} is not possible: indices go from 0 to count - 1."
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
        """Returns the arguments of `jax.distributed.initialize`.

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


class SaidByEach(Exception):  # noqa: N818 - what errors inherit
    """A second base class of errors that each affected process raises itself.

    The loss of another process never replaces them.

    Example:
        >>> class DifferingInputsError(SaidByEach, ArgumentError):
        ...     pass
    """


def gather(processes: Coordinator, topic: str, value: object = None) -> list[Any]:
    """Returns the JSON values of all processes, in order of their index. The call waits as long as all are alive.

    Raises:
        ProcessLostError: a process is lost.

    Example:
        >>> from estimator_core.coordinator import ALONE
        >>> gather(ALONE, "anything", {"rows": 3})
        [{'rows': 3}]
    """
    if processes.count == 1:
        return [value]
    return [json.loads(text) for text in processes.agree(topic, json.dumps(value), math.inf)]


def chief_says(processes: Coordinator, topic: str, value: object = None) -> Any:
    """Returns the JSON value of process 0. The values of the others are ignored.

    Raises:
        ProcessLostError: a process is lost.

    Example:
        >>> from estimator_core.coordinator import ALONE
        >>> chief_says(ALONE, "anything", 3)
        3
    """
    if processes.count == 1:
        return value
    return json.loads(processes.tell(topic, json.dumps(value) if processes.index == 0 else None, math.inf))
