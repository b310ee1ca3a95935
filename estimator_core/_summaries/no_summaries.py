"""A summary writer that writes nothing, for processes and runs that have no event file."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@final
class NoSummaries:
    """Takes every call of a `SummaryWriter` and does nothing.

    Example:
        >>> NO_SUMMARIES.scalar("loss", 0.5, 10)
    """

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Does nothing."""

    def histogram(self, tag: str, values: ArrayLike, step: int) -> None:
        """Does nothing."""

    def image(self, tag: str, image: ArrayLike, step: int) -> None:
        """Does nothing."""

    def text(self, tag: str, text: str, step: int) -> None:
        """Does nothing."""

    def collecting(self) -> AbstractContextManager[None]:
        """Does nothing."""
        return nullcontext()

    def encode_if_due(self) -> bool:
        """Nothing waits."""
        return True

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


NO_SUMMARIES: Final = NoSummaries()
