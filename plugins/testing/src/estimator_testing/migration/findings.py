"""What is found in a file."""

from __future__ import annotations

from dataclasses import dataclass

from estimator_testing.migration.edits import Edit


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An old form, where it stands, and the new one.

    Attributes:
        line: from 1.
        old: the old form, as the reader would recognise it.
        new: the new form, or what to do.
        edits: what makes the new form of the old; none where it cannot be rewritten safely.
    """

    line: int
    old: str
    new: str
    edits: tuple[Edit, ...] = ()

    @property
    def fixable(self) -> bool:
        """Whether `--fix` rewrites it."""
        return bool(self.edits)
