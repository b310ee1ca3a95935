"""One memory budget for all connections of a server. A request that does not fit is refused before it uses memory."""

from __future__ import annotations

import threading
from types import TracebackType

from estimator_exporters.serving.refusals import FullError, TooLargeError


class Budget:
    """The bytes that all requests together may hold: heads, bodies, inflated bodies, tensors and answers.

    Args:
        total: the size of the budget in bytes.

    Example:
        >>> budget = Budget(100)
        >>> with budget.lease() as lease:
        ...     lease.grow(60)
        ...     budget.used
        60
        >>> budget.used
        0
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self._lock = threading.Lock()  # decoding threads also take bytes

    def lease(self) -> Lease:
        """Returns an empty account for one request or connection."""
        return Lease(self)

    def take(self, count: int, held: int) -> None:
        """Takes bytes for a holder that already holds `held`.

        Raises:
            TooLargeError: the holder would hold more than the total.
            FullError: other holders use too much of the budget at present.
        """
        with self._lock:
            if self.used + count <= self.total:
                self.used += count
                return
        if held + count > self.total:
            raise TooLargeError(f"the request needs more than the memory for all requests, {self.total} bytes")
        raise FullError("the server's memory for requests is full; try again later")

    def give_back(self, count: int) -> None:
        """Returns bytes to the budget."""
        with self._lock:
            self.used -= count


class Lease:
    """The bytes that one request or connection holds of a budget. As a context, it returns all of them at its end.

    Args:
        budget: the budget from which it takes.
    """

    __slots__ = ("_budget", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0

    def grow(self, count: int) -> None:
        """Takes `count` more bytes.

        Raises:
            TooLargeError, FullError: the budget has fewer bytes left.
        """
        self._budget.take(count, self.held)
        self.held += count

    def shrink(self, to: int) -> None:
        """Returns all bytes above `to` to the budget."""
        if self.held > to:
            self._budget.give_back(self.held - to)
            self.held = to

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shrink(0)
