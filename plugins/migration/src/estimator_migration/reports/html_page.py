"""A report for a browser: every program with the findings beside its lines."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from html import escape

from estimator_migration.checking import Use
from estimator_migration.reports.program import Program, counts
from estimator_migration.rows import Verdict

_COLOURS = {
    Verdict.SAME: "#d8f0d8",
    Verdict.RENAMED: "#e4f0d0",
    Verdict.PARTLY: "#f0f2d0",
    Verdict.DIFFERS: "#fdf3c8",
    Verdict.REWRITE: "#fde0c0",
    Verdict.GONE: "#f8d0d0",
    Verdict.UNKNOWN: "#e8d8f4",
}
_STYLE = (
    "body{font-family:sans-serif}table{border-collapse:collapse}td{vertical-align:top;padding:1px 8px}"
    "td.n{color:#888;text-align:right}pre{margin:0}"
)


def html_page(programs: Sequence[Program]) -> str:
    """Returns a self-contained page."""
    return "\n".join(_parts(programs))


def _parts(programs: Sequence[Program]) -> Iterator[str]:
    yield f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>estimator migrate check</title><style>{_STYLE}"
    yield "</style><h1>estimator migrate check</h1><ul>"
    for verdict, count in counts(programs).items():
        yield f'<li style="background:{_COLOURS[verdict]}">{count} {escape(verdict.value)}</li>'
    yield "</ul>"
    for program in programs:
        yield f"<h2>{escape(program.path)}</h2>"
        if program.error:
            yield f"<p>Cannot be read: {escape(program.error)}</p>"
        for other in program.others:
            yield from (f"<p>Line {other.line}: {escape(note)}</p>" for note in other.notes())
        yield "<table>"
        by_line: dict[int, list[Use]] = {}
        for use in program.uses:
            by_line.setdefault(use.line, []).append(use)
        for number, line in enumerate(io.StringIO(program.source, newline=None), 1):  # split like Python does
            notes = "".join(_note(use) for use in by_line.get(number, ()))
            yield f"<tr><td class=n>{number}</td><td><pre>{escape(line.rstrip())}</pre></td><td>{notes}</td></tr>"
        yield "</table>"
    yield "</html>"


def _note(use: Use) -> str:
    row = use.row
    place = f" &rarr; <code>{escape(row.place)}</code>" if row.place else ""
    said = f"<b>{escape(use.written)}</b>{place} ({escape(row.verdict.value)}) {escape(row.how)}"
    return f'<div style="background:{_COLOURS[row.verdict]}">{said}</div>'
