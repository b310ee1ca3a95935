"""A report for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from estimator_migration.reports.program import Program, counts


def text_report(programs: Sequence[Program]) -> str:
    """Returns one line for each use, and the counts."""
    return "\n".join(_lines(programs))


def _lines(programs: Sequence[Program]) -> Iterator[str]:
    for program in programs:
        if program.error:
            yield f"{program.path}: cannot be read: {program.error}"
        for use in program.uses:
            row = use.row
            place = f" -> {row.place}" if row.place else ""
            how = f" {row.how}" if row.how else ""
            yield f"{program.path}:{use.line}:{use.column}: {use.written}{place} [{row.verdict.value}]{how}"
        for other in program.others:
            yield from (f"{program.path}:{other.line}: {note}" for note in other.notes())
    parts = [f"{count} {verdict.value}" for verdict, count in counts(programs).items()]
    unread = sum(bool(program.error) for program in programs)
    summary = ", ".join([*parts, f"{unread} cannot be read"] if unread else parts)
    yield f"{len(programs)} file{'' if len(programs) == 1 else 's'}: {summary or 'no name of TensorFlow'}."
