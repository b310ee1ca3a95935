"""The contract through which the processes of a run agree. `Alone` is for a run with a single process.

The loop uses only a `Coordinator`. It transmits decisions, each a few bytes of text, and never arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["ALONE", "Alone", "Coordinator", "Lost", "Series"]


@dataclass(frozen=True)
class Lost:
    """A lost process, and how the loss was detected."""

    index: int
    who: str
    reason: str

    def describe(self, count: int) -> str:
        """Describes the loss in a sentence.

        Args:
            count: the number of processes.

        Example:
            >>> Lost(1, "host, pid 7", "it was killed.").describe(2)[:56]
            'Process 1 of 2 (host, pid 7) is lost: it was killed. All'
        """
        return (
            f"Process {self.index} of {count} ({self.who}) is lost: {self.reason.rstrip('.')}. All processes end "
            "now; start all of them again to continue from the newest checkpoint."
        )


class Coordinator(Protocol):
    """The processes of a run, as seen from one of them. It is for rare decisions. No part of a batch passes through it.

    Every process makes the same calls for a topic in the same order. A topic may be reused. Each wait has a timeout in
    seconds, and ends at once when a process is lost.
    """

    @property
    def index(self) -> int:
        """The index of this process. Process 0 is the chief, which writes."""
        ...

    @property
    def count(self) -> int:
        """The number of processes."""
        ...

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        """Returns the values of all processes, in order of their index. Waits for all of them.

        Args:
            topic: the name of the decision. All processes use the same topics in the same order.
            value: the value of this process.
            timeout: seconds to wait for the others.

        Raises:
            ProcessLostError: a process is lost or did not arrive in time. The message names it.
        """
        ...

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        """Returns the value of process 0. The values of the others are ignored, but the call waits for them.

        Args:
            topic: see `agree`.
            value: the value of this process; may be None except in process 0.
            timeout: seconds to wait for the others.

        Raises:
            ProcessLostError: see `agree`.
        """
        ...

    def barrier(self, topic: str, timeout: float) -> None:
        """Waits until all processes have arrived.

        Args:
            topic: see `agree`.
            timeout: seconds to wait for the others.

        Raises:
            ProcessLostError: see `agree`.
        """
        ...

    def fail(self, error: BaseException) -> None:
        """Informs the others, without blocking, that this process ends with an error."""
        ...

    def lost(self) -> Lost | None:
        """Returns the lost process, or None while all are alive. A process that learns of a loss ends."""
        ...

    def close(self) -> None:
        """Leaves the other processes, so that the silence of this process does not count as a loss."""
        ...


@runtime_checkable
class Series(Protocol):
    """An optional part of a `Coordinator`. It ends a process whose devices wait for a process that has stopped.

    Example:
        >>> isinstance(Alone(), Series)
        False
    """

    def follow(self, at: Callable[[], int]) -> Callable[[], None]:
        """Ends the series of operations of the devices that the last call has begun, and begins the next one.

        All processes take part in the same series. When a process ends one, those that have begun more operations than
        it are told that it is lost to them. The call waits for no other process.

        Args:
            at: a function that returns the number of operations that this process has begun. Any thread may call it.

        Returns:
            A function that ends this series earlier. It waits for no other process.
        """
        ...


class Alone:
    """A single process. It makes every decision itself, and the calls cost nothing.

    Example:
        >>> alone = Alone()
        >>> alone.agree("anything", "3", timeout=1.0), alone.tell("anything", "4", timeout=1.0), alone.lost()
        (['3'], '4', None)
    """

    index = 0
    count = 1

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        """Returns the value of this process."""
        return [value]

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        """Returns the value of this process."""
        return value or ""

    def barrier(self, topic: str, timeout: float) -> None:
        """Does nothing, because there are no other processes to wait for."""

    def fail(self, error: BaseException) -> None:
        """Does nothing, because there are no other processes to inform."""

    def lost(self) -> Lost | None:
        """Returns None, because no other process can be lost."""
        return None

    def close(self) -> None:
        """Does nothing, because there are no other processes."""


#: The coordinator of a run with a single process.
ALONE = Alone()
