"""A program and its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from estimator_migration.checking import Use
from estimator_migration.rows import Verdict


@dataclass(frozen=True, kw_only=True)
class Program:
    """A checked file.

    Args:
        path: its path, as the user wrote it.
        source: its text.
        uses: its uses of TensorFlow, by line.
        error: why it could not be read; "" if it could.
    """

    path: str
    source: str
    uses: tuple[Use, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """The program as JSON values."""
        return {"file": self.path, "error": self.error, "uses": [use.to_json() for use in self.uses]}


def counts(programs: Iterable[Program]) -> dict[Verdict, int]:
    """How many uses there are of each verdict, in the order of the work they make."""
    found = Counter(use.row.verdict for program in programs for use in program.uses)
    return {verdict: found[verdict] for verdict in Verdict if found[verdict]}
