"""The processes that train one model together."""

from __future__ import annotations

from dataclasses import dataclass

from estimator_core.errors import ArgumentError


@dataclass(frozen=True)
class Processes:
    """This process among those that train one model together; process 0 is the chief.

    Args:
        coordinator: `host:port` of process 0, which all others can reach; the port must be free there.
        count: how many processes there are.
        index: which of them this is, from 0.
        source: what told so, for messages. Of "jax.distributed", which has connected them already, jax alone knows the
            coordinator: it stays empty.

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

    def __post_init__(self) -> None:
        if self.count < 1 or not 0 <= self.index < self.count:
            raise ArgumentError(
                f"{self.source}: process {self.index} of {self.count} cannot be: indices go from 0 to count - 1."
            )
        host, colon, port = self.coordinator.rpartition(":")
        if not (self.source == "jax.distributed" and not self.coordinator) and not (
            host and colon and port.isdigit() and 0 < int(port) < 65536
        ):
            raise ArgumentError(
                f"{self.source}: the coordinator must be host:port of process 0, given: {self.coordinator!r}."
            )

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints, events and exports."""
        return self.index == 0
