"""Finds the old forms in one file, and rewrites its text with the new forms."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from estimator_core.errors import EstimatorError
from estimator_testing.migration.edits import Source
from estimator_testing.migration.findings import Finding
from estimator_testing.migration.hook_members import hook_findings
from estimator_testing.migration.imports import import_findings
from estimator_testing.migration.private_use import private_use_findings
from estimator_testing.migration.texts import text_findings


@dataclass(frozen=True, kw_only=True)
class Migrated:
    """A file, its old forms, and its text after the rewrite.

    Attributes:
        path: the path of the file.
        findings: the old forms, by line.
        before: the text before the rewrite.
        after: the text after the rewrite of every old form that can be rewritten.
    """

    path: Path
    findings: tuple[Finding, ...]
    before: str
    after: str

    def diff(self) -> str:
        """Returns the change as a unified diff, or "" without a change."""
        lines = (self.before.splitlines(keepends=True), self.after.splitlines(keepends=True))
        return "".join(difflib.unified_diff(*lines, fromfile=str(self.path), tofile=str(self.path)))


def migrate_file(path: Path) -> Migrated:
    """Searches a file for old forms. It writes nothing.

    Raises:
        EstimatorError: the file is not Python.
    """
    text = path.read_text(encoding="utf-8")
    try:
        findings, after = _migrated(text)
    except SyntaxError as error:
        raise EstimatorError(f"{path}:{error.lineno} is not Python: {error.msg}") from error
    return Migrated(path=path, findings=tuple(sorted(findings, key=lambda one: one.line)), before=text, after=after)


def _migrated(text: str) -> tuple[list[Finding], str]:
    """Returns the old forms in a program, and the program with the new forms."""
    source = Source(text)
    paths = [*import_findings(source), *text_findings(source, _migrated)]
    findings = [*paths, *hook_findings(source), *private_use_findings(source)]
    # Paths come first, then hooks on the result, because both may change the same import.
    moved = Source(source.apply(edit for one in paths for edit in one.edits))
    return findings, moved.apply(edit for one in hook_findings(moved) for edit in one.edits)
