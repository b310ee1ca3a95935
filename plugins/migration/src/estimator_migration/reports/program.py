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
        path: the path, as the user wrote it.
        source: the text of the program.
        uses: the uses of TensorFlow, by line.
        error: the reason why it could not be read, or "".
    """

    path: str
    source: str
    uses: tuple[Use, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the program as JSON values."""
        return {"file": self.path, "error": self.error, "uses": [use.to_json() for use in self.uses]}


def counts(programs: Iterable[Program]) -> dict[Verdict, int]:
    """Returns the number of uses of each verdict, ordered by the work that they require."""
    found = Counter(use.row.verdict for program in programs for use in program.uses)
    return {verdict: found[verdict] for verdict in Verdict if found[verdict]}
