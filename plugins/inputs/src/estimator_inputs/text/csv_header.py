"""The beginning of a CSV file: the names of its columns, and the types that its first rows determine."""

from __future__ import annotations

import itertools
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from estimator_core.errors import InputError
from estimator_inputs.reading.files import check_is_text
from estimator_inputs.table.types import ColumnType, inferred
from estimator_inputs.text.csv_table import CsvFormat, fields_of, read_columns
from estimator_inputs.text.quotes import last_record_end, record_ends

_HEAD = 1 << 16
_LONGEST_HEAD = 1 << 24
#: The bytes that are read at once to find the first value of a column.
_PIECE = 1 << 20
_SHOWN = 60
#: The length of the longest mark at the begin of a file.
_MARK = 16
#: The byte order marks of UTF-16.
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PADDED = re.compile("[+-]?0[0-9xX]")
_WHOLE = re.compile("-?[0-9]+")
_QUOTED = re.compile(b'"[^"]*"')


def begin_of(stream: BinaryIO, path: Path) -> int:
    r"""Returns the byte offset of the first record of a file without column names: after the byte order mark of UTF-8.

    Raises:
        InputError: the file is compressed.

    Example:
        >>> import io
        >>> begin_of(io.BytesIO(b"\xef\xbb\xbf1,2\n"), Path("a")), begin_of(io.BytesIO(b"1,2\n"), Path("a"))
        (3, 0)
    """
    head = stream.read(_MARK)
    check_is_text(path, head)
    return len(BOM_UTF8) if head.startswith(BOM_UTF8) else 0


def read_header(
    stream: BinaryIO, form: CsvFormat, path: Path, *, replaced: bool = False
) -> tuple[list[str], tuple[int, int]]:
    """Returns the names of the columns, and the byte offset and line of the first record.

    Args:
        stream: the content of the file.
        form: the form of the file.
        path: the file, for messages.
        replaced: whether other names replace these, which may then have any encoding.

    Raises:
        InputError: the file or its first line is empty, the names are not UTF-8 or are repeated, or lines end in CR.
    """
    head, ends = _read(stream, form, records=1)
    if not head.strip():
        raise InputError(f"{path} is empty: its first line should name the columns.")
    check_is_text(path, head)
    if head.startswith(_UTF_16):
        raise InputError(f"{path} is text in UTF-16. Write it again in UTF-8: iconv -f UTF-16 -t UTF-8.")
    if b"\0" in head[: int(ends[0]) if ends.size else len(head)]:
        kind = "a Parquet file" if head.startswith(b"PAR1") else "not text, or text in UTF-16"
        raise InputError(f"{path} is {kind}: its first line contains NUL bytes. CSV is text in UTF-8.")
    end = int(ends[0]) if ends.size else len(head)
    line = head[:end].rstrip(b"\r\n")
    if (b"\n" not in head and b"\r" in head) or b"\r" in (line if form.quote is None else _QUOTED.sub(b"", line)):
        raise InputError(f"{path}: its lines end in CR (\\r) only. Write it again with LF (\\n): tr '\\r' '\\n'.")
    if not line.removeprefix(BOM_UTF8).strip():
        raise InputError(f"{path}, line 1 is empty, but should name the columns. Remove the empty lines before them.")
    if not replaced and not _is_text(line):
        raise InputError(
            f"{path}, line 1: the names of the columns are not valid UTF-8: {line[:_SHOWN]!r}. Write the file again in "
            "UTF-8, for example: iconv -f LATIN1 -t UTF-8."
        )
    names = fields_of(line, form)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}, line 1: two columns are named {twice[0]!r}. Rename one (programs: column_names).")
    return names, (end, 1 + head.count(b"\n", 0, end))


def infer_types(
    stream: BinaryIO, names: Sequence[str], form: CsvFormat, *, rows: int, needed: Collection[str], most: int
) -> dict[str, ColumnType]:
    """Returns the types of all columns. The first rows determine them.

    If a column has no value there, the next piece of the file that has one determines its type.

    If one integer has a leading zero, such as 00123 or 0x1F, the integers of the column are codes and are read as
    texts. Integers out of the range of int64 are uint64. Without a row, there is no type.

    Args:
        stream: a stream at the first record.
        names: the names of the columns.
        form: the format of fields.
        rows: the number of rows to use. Records with a wrong number of fields are skipped.
        needed: the columns whose types must be known.
        most: the bytes after these rows in which their first values are searched.
    """
    head, ends = _read(stream, form, records=rows)
    end = int(ends[min(rows, len(ends)) - 1]) if ends.size else len(head)
    head, rest = head[:end], head[end:]
    if not head.strip():
        return {}
    found = _types_of(head, names, names, form)
    while most > 0 and (open_ones := [name for name in names if name in needed and not found[name].known]):
        piece = stream.read(_PIECE)
        rest, most = rest + piece, most - len(piece)
        end = last_record_end(rest, form.quote) if piece else len(rest)
        if end:
            found |= _types_of(rest[:end], names, open_ones, form)
        if not piece:
            break
        rest = rest[end:]
    return found


def _types_of(data: bytes, names: Sequence[str], wanted: Sequence[str], form: CsvFormat) -> dict[str, ColumnType]:
    """Returns the types of some columns of whole records."""
    import pyarrow as pa

    unknown: dict[str, Any] = dict.fromkeys(wanted)
    try:
        table = read_columns(data, names, unknown, form, quoted_na=True)
    except pa.ArrowInvalid:
        table = None
    if table is None or any(pa.types.is_binary(field.type) for field in table.schema):  # bad rows have no types
        ends = record_ends(data, form.quote).tolist()
        records = [data[b:e] for b, e in itertools.pairwise(dict.fromkeys([0, *ends, len(data)]))]
        good = [record for record in records if len(fields_of(record, form)) == len(names) and _is_text(record)]
        if not good:
            return dict.fromkeys(wanted, inferred(pa.null()))
        data = b"".join(good)
        table = read_columns(data, names, unknown, form, quoted_na=True)
    found = {name: table.column(name).type for name in wanted}
    whole = {name: pa.string() for name in wanted if pa.types.is_integer(found[name]) or _is_wide(table.column(name))}
    if whole:
        texts = read_columns(data, names, whole, form, quoted_na=True)
        found |= {name: _whole_type([*filter(None, texts.column(name).to_pylist())], found[name]) for name in whole}
    return {name: inferred(one) for name, one in found.items()}


def _is_wide(column: Any) -> bool:
    """Returns whether some real numbers are as large as integers that int64 cannot represent."""
    import pyarrow as pa

    return pa.types.is_floating(column.type) and bool((np.abs(column.drop_null().to_numpy()) >= 2.0**63).any())


def _whole_type(texts: Sequence[str], arrow: Any) -> Any:
    """Returns the type of a column that Arrow reads as numbers. Integers out of the range of int64 stay integers."""
    import pyarrow as pa

    whole = [text.strip() for text in texts]
    if pa.types.is_floating(arrow) and not all(map(_WHOLE.fullmatch, whole)):
        return arrow
    if any(map(_PADDED.match, texts)):
        return pa.string()
    if pa.types.is_floating(arrow):
        return pa.int64() if any(text.startswith("-") for text in whole) else pa.uint64()
    return arrow


def _is_text(record: bytes) -> bool:
    try:
        record.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read(stream: BinaryIO, form: CsvFormat, *, records: int) -> tuple[bytes, np.ndarray]:
    """Returns bytes with at least this many records, or all records, and the places where the records end."""
    head = b""
    while True:
        piece = stream.read(max(_HEAD, len(head)))
        head += piece
        ends = record_ends(head, form.quote)
        if not piece or len(ends) >= records or len(head) > _LONGEST_HEAD:
            return head, ends
