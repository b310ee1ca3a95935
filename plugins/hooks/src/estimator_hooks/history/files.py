"""A growing table on disk: JSON lines, and the same rows as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core.storage import draft_of

JSON_LINES = "history.jsonl"
CSV = "history.csv"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Returns the rows of a JSON lines file, oldest first.

    There are none without the file. Incomplete lines are skipped.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    rows: list[dict[str, Any]] = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def write_rows(directory: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Replaces both files, each of them atomically."""
    directory.mkdir(parents=True, exist_ok=True)
    _replace(directory / JSON_LINES, "".join(json.dumps(row) + "\n" for row in rows))
    write_csv(directory / CSV, rows)


def append_rows(directory: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Adds rows to the JSON lines file."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / JSON_LINES).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows as CSV, with a column for every name that occurs in a row."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with draft_of(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _replace(path: Path, text: str) -> None:
    with draft_of(path) as draft:
        draft.write_text(text, encoding="utf-8")
