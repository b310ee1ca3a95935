"""Reads the records of a CSV file as an Arrow table, and finds the faults of bad records."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from estimator_core.errors import ArgumentTypeError
from estimator_inputs.table.types import READ_AS_REAL, ColumnType, arrow_type
from estimator_inputs.text.quotes import record_ends

_COLUMN = re.compile(r"CSV column #(\d+)")
_REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")
_SHOWN = 60
_INFINITE = "a finite number becomes infinite"


@dataclass(frozen=True, kw_only=True)
class CsvFormat:
    """The format of fields.

    Args:
        delimiter: the byte between fields.
        quote: the byte around fields. None: quotes have no meaning.
        na_values: the texts that mean a missing value. In a dict, columns without an entry have only the empty text.
        quoted_na: whether these texts also mean a missing value in quotes.
    """

    delimiter: bytes = b","
    quote: bytes | None = b'"'
    na_values: Sequence[str] | Mapping[str, Sequence[str]] = ("",)
    quoted_na: bool = False

    def __post_init__(self) -> None:
        """Refuses a single text, whose characters would be used as texts.

        Raises:
            ArgumentTypeError: `na_values` is a text, or contains a text for a column.
        """
        lists = self.na_values.values() if isinstance(self.na_values, Mapping) else [self.na_values]
        for texts in lists:
            if isinstance(texts, str):
                raise ArgumentTypeError(f"na_values must hold lists of strings, given: {texts!r}. Write [{texts!r}].")

    def by_na(self, names: Iterable[str]) -> list[tuple[list[str], list[str]]]:
        """Returns the texts of missing values with the columns that they apply to.

        Arrow accepts one list of texts per table.

        Example:
            >>> CsvFormat(na_values={"a": ["", "NA"]}).by_na(["a", "b", "c"])
            [(['', 'NA'], ['a']), ([''], ['b', 'c'])]
        """
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in names:
            texts = self.na_values.get(name, ("",)) if isinstance(self.na_values, Mapping) else self.na_values
            groups.setdefault(tuple(texts), []).append(name)
        return [(list(texts), columns) for texts, columns in groups.items()]


class Faulty(NamedTuple):
    """A bad record, which does not become a row.

    Attributes:
        begin: the byte in the data where the record begins.
        text: the column and the fault.
    """

    begin: int
    text: str


def read_table(data: bytes, names: Sequence[str], types: Mapping[str, ColumnType], form: CsvFormat) -> Any:
    """Returns the columns in `types` of records whose columns are `names`.

    Raises:
        pyarrow.ArrowInvalid: a record has a wrong number of fields, a value has the wrong type, a finite number becomes
            infinite, or bytes are not UTF-8.
    """
    import pyarrow as pa

    read = functools.partial(read_columns, data, names, form=form, quoted_na=form.quoted_na)
    table = read({name: arrow_type(kind) for name, kind in types.items()})
    for name in [name for name, kind in types.items() if kind.dtype.kind == "f"]:
        infinite = np.isinf(table.column(name).to_numpy())  # missing values are NaN
        if infinite.any():
            texts = read({name: pa.string()}).column(name).filter(pa.array(infinite)).to_pylist()
            if any(text is not None and "inf" not in text.lower() for text in texts):
                raise pa.ArrowInvalid(f"CSV column #{list(names).index(name)}: {_INFINITE}")
    return table


def read_columns(
    data: bytes, names: Sequence[str], types: Mapping[str, Any], form: CsvFormat, *, quoted_na: bool
) -> Any:
    """Returns some columns of records.

    Args:
        data: the bytes of whole records.
        names: the names of the columns in the file.
        types: the Arrow types of the columns to read. None: the values determine the type.
        form: the format of fields.
        quoted_na: whether the texts of missing values also apply in quotes.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    quote = form.quote if form.quote is not None and form.quote in data else None  # parsing is faster without quotes
    tables = [
        arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=list(names), use_threads=False, block_size=len(data) + 1),
            arrow_csv.ParseOptions(
                delimiter=form.delimiter.decode(),
                quote_char=False if quote is None else quote.decode(),
                newlines_in_values=quote is not None,
            ),
            arrow_csv.ConvertOptions(
                include_columns=columns,
                column_types={name: types[name] for name in columns if types[name] is not None},
                null_values=texts,
                strings_can_be_null=True,
                quoted_strings_can_be_null=quoted_na,
            ),
        )
        for texts, columns in form.by_na(types)
    ]
    if len(tables) == 1:
        return tables[0]
    return pa.table({name: table.column(name) for table in tables for name in table.column_names})


def read_what_can_be(
    data: bytes, names: Sequence[str], types: Mapping[str, ColumnType], form: CsvFormat, *, first_only: bool
) -> tuple[list[tuple[Any, np.ndarray]], list[Faulty]]:
    """Returns the good records of `data`, and the bad ones.

    If the data cannot be read, each half is read again, until single records are left. This is slow, but happens only
    for pieces with faults.

    Args:
        data: the bytes of whole records.
        names: the names of the columns in the file.
        types: the types of the columns to read.
        form: the format of fields.
        first_only: whether to stop at the first fault.

    Returns:
        The tables, each with the places where its records begin, and the faulty records.
    """
    import pyarrow as pa

    ends = record_ends(data, form.quote)
    if not ends.size or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    begins = np.append(0, ends[:-1])
    filled = np.array([bool(data[b:e].strip(b"\r\n")) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)])
    begins, ends = begins[filled], ends[filled]
    tables: list[tuple[Any, np.ndarray]] = []
    faulty: list[Faulty] = []
    waiting = [(0, len(begins))] if len(begins) else []
    while waiting:
        first, last = waiting.pop()
        piece = data[begins[first] : ends[last - 1]]
        try:
            tables.append((read_table(piece, names, types, form), begins[first:last]))
        except pa.ArrowInvalid as error:
            if last - first > 1:
                middle = (first + last) // 2
                waiting += [(middle, last), (first, middle)]
                continue
            faulty.append(Faulty(int(begins[first]), _fault_of(piece, names, types, form, error)))
            if first_only:
                break
    return tables, faulty


def fields_of(record: bytes, form: CsvFormat) -> list[str]:
    """Returns the fields of one record as text."""
    text = record.decode("utf-8-sig", errors="backslashreplace")
    quoting = {"quoting": csv.QUOTE_NONE} if form.quote is None else {"quotechar": form.quote.decode()}
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=form.delimiter.decode(), **quoting)  # pyright: ignore[reportArgumentType]
    try:
        return next(rows, [])
    except csv.Error:  # a field of more than 128 KiB
        return text.rstrip("\r\n").split(form.delimiter.decode())


def _fault_of(
    record: bytes, names: Sequence[str], types: Mapping[str, ColumnType], form: CsvFormat, error: Exception
) -> str:
    fields = fields_of(record, form)
    if len(fields) != len(names):
        more = "more than" if len(fields) > len(names) else "fewer than"
        return f"{len(fields)} fields, {more} the {len(names)} columns ({', '.join(names)})"
    found = _COLUMN.search(str(error))
    if found is None:
        return str(error)
    number = int(found.group(1))
    name, field = names[number], fields[number]
    if "UTF8" in str(error):
        shown = repr(field[:_SHOWN]).replace(r"\\x", r"\x")  # repr has escaped the backslash of a byte such as `\xff`
        return f"column {name!r}: {shown} is not valid UTF-8"
    if _INFINITE in str(error):
        return f"column {name!r}: {field[:_SHOWN]!r} is infinite as {types[name].name}"
    larger = types[name].dtype == np.uint64 and field.strip().isdigit()
    cure = "; read the column as 'string' and hash it (column_types)" if larger else ""
    if types[name].dtype.kind in "iu" and _REAL.fullmatch(field.strip()):
        cure = READ_AS_REAL
    return f"column {name!r}: {field[:_SHOWN]!r} is not of type {types[name].name}{cure}"
