"""The contract through which the processes of a run agree. `Alone` is a process that trains by itself.

The loop only uses a `Coordinator`. It carries decisions, a few bytes of text each, and no arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["ALONE", "Alone", "Coordinator", "Lost"]


@dataclass(frozen=True)
class Lost:
    """A process that is gone, and how that was noticed."""

    index: int
    who: str
    reason: str

    def describe(self, count: int) -> str:
        """The loss in a sentence.

        Args:
            count: how many processes there are.

        Example:
            >>> Lost(1, "host, pid 7", "it was killed.").describe(2)[:56]
            'Process 1 of 2 (host, pid 7) is lost: it was killed. All'
        """
        return (
            f"Process {self.index} of {count} ({self.who}) is lost: {self.reason.rstrip('.')}. All processes end "
            "now; start all of them again to continue from the newest checkpoint."
        )


class Coordinator(Protocol):
    """The processes of a run, as one of them sees them. It is for rare decisions: no part of a batch passes through it.

    Every process makes the same calls for a topic in the same order. A topic may be used again. Each wait has a timeout
    in seconds, and ends at once when a process is lost.
    """

    @property
    def index(self) -> int:
        """The index of this process. 0 is the chief, which writes."""
        ...

    @property
    def count(self) -> int:
        """The number of processes."""
        ...

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        """The values of all processes, in order of their index. Waits for all.

        Args:
            topic: what it is about; all processes ask about the same topics in the same order.
            value: what this process says.
            timeout: how long it waits for the others, in seconds.

        Raises:
            ProcessLostError: one of them is gone, or has not arrived in time. The message names it.
        """
        ...

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        """The value of process 0. The values of the others do not matter, but the call waits for them.

        Args:
            topic: as of `agree`.
            value: what this process says; may be None where it is not process 0.
            timeout: how long it waits for the others, in seconds.

        Raises:
            ProcessLostError: as `agree`.
        """
        ...

    def barrier(self, topic: str, timeout: float) -> None:
        """Returns when all processes have arrived.

        Args:
            topic: as of `agree`.
            timeout: how long it waits for the others, in seconds.

        Raises:
            ProcessLostError: as `agree`.
        """
        ...

    def fail(self, error: BaseException) -> None:
        """Tells the others, without blocking, that this process ends with an error."""
        ...

    def lost(self) -> Lost | None:
        """The lost process; None while all are alive. A process that learns of a loss ends."""
        ...

    def close(self) -> None:
        """Leaves the others, so that this process's silence does not count as a loss."""
        ...


class Alone:
    """One process: every decision is its own, and the calls cost nothing.

    Example:
        >>> alone = Alone()
        >>> alone.agree("anything", "3", timeout=1.0), alone.tell("anything", "4", timeout=1.0), alone.lost()
        (['3'], '4', None)
    """

    index = 0
    count = 1

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        """This process's value."""
        return [value]

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        """This process's value."""
        return value or ""

    def barrier(self, topic: str, timeout: float) -> None:
        """Does nothing, because there is no other process to wait for."""

    def fail(self, error: BaseException) -> None:
        """Does nothing, because there is no other process to inform."""

    def lost(self) -> Lost | None:
        """Returns None, because no other process can be lost."""
        return None

    def close(self) -> None:
        """Does nothing, because there are no other processes."""


#: The coordinator of a run with a single process.
ALONE = Alone()
