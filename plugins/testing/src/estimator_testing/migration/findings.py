"""A finding in a file."""

from __future__ import annotations

from dataclasses import dataclass

from estimator_testing.migration.edits import Edit


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An old form, its place, and the new form.

    Attributes:
        line: the line, from 1.
        old: the old form, as the reader recognises it.
        new: the new form, or the required action.
        edits: the edits that make the new form. Empty if it cannot be rewritten safely.
    """

    line: int
    old: str
    new: str
    edits: tuple[Edit, ...] = ()

    @property
    def fixable(self) -> bool:
        """Whether `--fix` rewrites it."""
        return bool(self.edits)
