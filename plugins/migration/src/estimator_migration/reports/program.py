"""A program and its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from estimator_migration.checking import Use
from estimator_migration.rows import Verdict


@dataclass(frozen=True, kw_only=True)
class OtherFile:
    """A file of the same program, from which a checked file imports names.

    Args:
        line: the line of the first import.
        path: the other file.
        read: whether that file is checked, too.
        names: the imported names and modules.
        of_tensorflow: those that mean a name of TensorFlow there. Their uses are not found.
    """

    line: int
    path: str
    read: bool
    names: tuple[str, ...]
    of_tensorflow: tuple[str, ...]

    def notes(self) -> Iterator[str]:
        """Yields what the user should do."""
        if not self.read:
            yield f"{', '.join(self.names)} from {self.path}, which is not read: check that file, too."
        if self.of_tensorflow:
            yield (
                f"{', '.join(self.of_tensorflow)}: a name of TensorFlow from {self.path}. Its uses in this file are "
                "not found: import it from TensorFlow."
            )


@dataclass(frozen=True, kw_only=True)
class Program:
    """A checked file.

    Args:
        path: the path, as the user wrote it.
        source: the text of the program.
        uses: the uses of TensorFlow, by line.
        error: the reason why it could not be read, or "".
        others: the other files of the program from which it imports names.
    """

    path: str
    source: str
    uses: tuple[Use, ...] = ()
    error: str = ""
    others: tuple[OtherFile, ...] = ()

    @property
    def must_change(self) -> bool:
        """Whether the file, or what it imports, must change, or cannot be read."""
        return bool(self.uses or self.error or any(each.of_tensorflow for each in self.others))

    def to_json(self) -> dict[str, Any]:
        """Returns the program as JSON values."""
        return {
            "file": self.path,
            "error": self.error,
            "uses": [use.to_json() for use in self.uses],
            "imports": [vars(each) for each in self.others],
        }


def counts(programs: Iterable[Program]) -> dict[Verdict, int]:
    """Returns the number of uses of each verdict, ordered by the work that they require."""
    found = Counter(use.row.verdict for program in programs for use in program.uses)
    return {verdict: found[verdict] for verdict in Verdict if found[verdict]}
