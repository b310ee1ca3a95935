"""Rows of TSV, CSV and JSON-lines files, read one after another. Errors name file and line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from estimator_canned_bert.text.layouts import Columns, counted_columns, named_columns
from estimator_core.errors import InputError

SUFFIXES = (".tsv", ".csv", ".jsonl")
#: The number of texts of a row in words. The key is whether rows are pairs.
TEXTS = {False: "one text", True: "two texts"}
#: The remedy for a row with too many columns. The key is whether the file is CSV.
_TOO_MANY = {
    False: "Replace tabs inside a text by spaces.",
    True: "Quote texts that contain commas.",
}
csv.field_size_limit(2**31 - 1)


class Row(NamedTuple):
    """One example as it is in the file.

    Attributes:
        text_a: the first text.
        text_b: the second text, or None.
        label: the label as it is written, or None.
        line: the number of its last line, from 1.
    """

    text_a: str
    text_b: str | None
    label: str | None
    line: int


def read_rows(path: Path, columns: Columns | None, *, labels: bool, headed: bool = True) -> Iterator[Row]:
    """Yields the examples of a file. The file is read in parts, so it may be larger than memory.

    In a TSV file of one column, an empty line is an empty text if another row follows. Other empty lines are not rows.

    Args:
        path: a .tsv, .csv or .jsonl file.
        columns: the columns of texts and label; None: the header or the number of columns determines them. Rows of JSON
            name their fields.
        labels: whether every row must have a label.
        headed: whether a file without labels may start with a header that names one text and no label.

    Raises:
        InputError: the file is empty, a column or a label is missing, a row has more columns than the first, or bytes
            are not UTF-8. The message names file and line.
    """
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    reader = _json_rows(path, labels) if path.suffix == ".jsonl" else _table_rows(path, columns, labels, headed)
    found = False
    for row in reader:
        found = True
        yield row
    if not found:
        raise InputError(
            f"{path} holds no examples: it is empty{' except for its header' if path.stat().st_size else ''}."
        )


def has_header(path: Path) -> bool | None:
    """Returns whether a file with labels starts with a header of names. None: every row has the names."""
    if path.suffix == ".jsonl":
        return None
    first = next(_records(path), None)
    return first is not None and named_columns(first[1]) is not None


def _table_rows(path: Path, columns: Columns | None, labels: bool, headed: bool) -> Iterator[Row]:
    most: int | None = None  # the number of columns of the first line, unless a task names them
    empty: list[int] = []  # lines without text since the last row
    for line, cells in _records(path):
        if columns is None:
            columns, most = _found_columns(path, line, cells, labels, headed), len(cells)
            if columns.header:
                continue
        elif columns.header and line == 1:
            continue
        if not cells or (cells == [""] and path.suffix != ".csv"):
            empty.append(line)
            continue
        if most == 1 and path.suffix != ".csv":  # CSV writes an empty text as ""
            yield from (Row("", None, None, number) for number in empty)
        empty.clear()
        if most is not None and any(cells[most:]):
            raise InputError(
                f"{path}, line {line}: {len(cells)} columns, but the first line has {most}: "
                f"{' | '.join(cells)[:80]!r}. {_TOO_MANY[path.suffix == '.csv']}"
            )
        yield _row(path, line, cells, columns, labels)


def _found_columns(path: Path, line: int, cells: Sequence[str], labels: bool, headed: bool) -> Columns:
    named = named_columns(cells, labels=labels or not headed)
    columns = named or counted_columns(len(cells), labels=labels)
    if columns is None and not labels:  # a test file that still contains the labels
        columns = counted_columns(len(cells), labels=True)
    if columns is None:
        raise InputError(
            f"{path}, line {line}: {len(cells)} columns without known names. Write a label and one or two "
            "texts in each line, or name columns such as sentence1, sentence2 and label in the first line, or name "
            "the task."
        )
    if labels and columns.label is None:
        raise InputError(f"{path}, line {line}: there is no label column among {', '.join(cells)}.")
    return columns


def _row(path: Path, line: int, cells: Sequence[str], columns: Columns, labels: bool) -> Row:
    def cell(place: int | None, what: str) -> str:
        if place is None or not -len(cells) <= place < len(cells):
            raise InputError(
                f"{path}, line {line}: column {place} ({what}) is missing; the line has {len(cells)} columns: "
                f"{' | '.join(cells)[:80]!r}."
            )
        return cells[place]

    label = None
    if labels or (columns.label is not None and -len(cells) <= columns.label < len(cells)):
        label = cell(columns.label, "label")
    if labels and not label:
        raise InputError(f"{path}, line {line}: the label is empty. Write a label, or remove the line.")
    text_b = None if columns.text_b is None else cell(columns.text_b, "second text")
    return Row(cell(columns.text_a, "text"), text_b, label, line)


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of every record and the number of its last line. Only CSV has quotes, as in GLUE."""
    lines = _lines(path)
    if path.suffix != ".csv":
        for number, line in enumerate(lines, 1):
            yield number, line.rstrip("\r\n").split("\t")
        return
    reader = csv.reader(lines, strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: not valid CSV: {error}.") from error
        yield reader.line_num, cells


def _lines(path: Path) -> Iterator[str]:
    # Bytes are decoded line by line: then the line of an invalid byte is known, and only a line feed ends a line.
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}, line {number}: not UTF-8 (its byte {error.start + 1} is 0x{raw[error.start]:02x}). "
                    "Convert the file, or remove the line."
                ) from error


def _json_rows(path: Path, labels: bool) -> Iterator[Row]:
    pairs: bool | None = None  # whether the first row has two texts
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: not valid JSON: {error}.") from error
        columns = named_columns(list(values), labels=labels) if isinstance(values, dict) else None
        if columns is None:
            raise InputError(f"{path}, line {number}: not an object with a text and a label: {line.strip()[:80]!r}.")
        cells = list(values.values())
        if labels and (columns.label is None or cells[columns.label] is None):
            raise InputError(f"{path}, line {number}: there is no label among {', '.join(values)}.")
        texts = [cells[columns.text_a]]
        if columns.text_b is not None and cells[columns.text_b] is not None:
            texts.append(cells[columns.text_b])
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"{path}, line {number}: a text is not a string: {line.strip()[:80]!r}.")
        paired = len(texts) == 2
        if pairs is not None and paired != pairs:
            raise InputError(
                f"{path}, line {number}: {TEXTS[paired]}, but the rows before it have {TEXTS[pairs]}. Give every row "
                'one text, or give every row two; an empty text is "".'
            )
        pairs = paired
        label = None if columns.label is None else cells[columns.label]
        if labels and (label == "" or isinstance(label, dict | list)):
            raise InputError(f"{path}, line {number}: the label {json.dumps(label)} is neither a name nor a number.")
        yield Row(texts[0], texts[1] if paired else None, None if label is None else str(label), number)
