"""Divides files of lines into chunks of whole records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from estimator_inputs.text.quotes import last_record_end, newlines_in, quote_fault, rows_in

#: A longer record counts as a fault, because a quote was probably never closed.
LONGEST_RECORD = 64 << 20


class Quoting(NamedTuple):
    """The characters of quoting, one byte each."""

    quote: bytes
    delimiter: bytes


class Chunk(NamedTuple):
    """The complete records of a chunk.

    Attributes:
        data: the bytes of the records.
        line: the line in which the first record begins, from 1.
        row: the number of the first record among the rows of the file, from 0, if rows are counted.
        after: the byte offset, line and row after the last record.
        fault: the fault in `data`, which is then a single line.
    """

    data: bytes
    line: int
    row: int
    after: tuple[int, int, int]
    fault: str | None = None


def read_chunks(
    stream: BinaryIO,
    *,
    block_bytes: int,
    quoting: Quoting | None,
    offset: int = 0,
    line: int = 1,
    row: int = 0,
    count_rows: bool = False,
) -> Iterator[Chunk]:
    """Yields the chunks of a stream at position `offset`, where `line` and `row` begin.

    A line with a misplaced quote is a chunk of its own, with a fault. Reading continues after it.
    """
    quote = None if quoting is None else quoting.quote
    rest, ended, size = b"", False, block_bytes
    while True:
        if len(rest) <= size and not ended:  # one more byte shows whether these are the last bytes
            piece = stream.read(size + 1 - len(rest))
            ended = not piece
            rest += piece
            continue
        if not rest:
            return
        # The content of a chunk depends only on its beginning, so a position can return to it.
        found = _first(rest, size, quoting, ended=ended and len(rest) <= size)
        if found is None:
            size *= 2
            continue
        data, fault = found
        offset += len(data)
        begins, line = line, line + newlines_in(data)
        first, row = row, row + (rows_in(data, quote) if count_rows and fault is None else int(count_rows))
        rest, size = rest[len(data) :], block_bytes
        yield Chunk(data, begins, first, (offset, line, row), fault)


def _first(rest: bytes, size: int, quoting: Quoting | None, *, ended: bool) -> tuple[bytes, str | None] | None:
    """Returns the whole records in the first `size` bytes, up to a faulty line, or that line. None: more bytes are
    needed.
    """
    if not ended and (quoting is None or quoting.quote not in rest) and (end := rest.rfind(b"\n", 0, size) + 1):
        return rest[:end], None  # the usual case: the data is copied once
    data = rest[:size]
    fault = None if quoting is None else quote_fault(data, *quoting, ended=ended)
    if fault is None:
        end = len(data) if ended else last_record_end(data, None if quoting is None else quoting.quote)
        if end:
            return data[:end], None
        if len(data) < LONGEST_RECORD:
            return None
        text = f"no record ends within {LONGEST_RECORD >> 20} MiB: look for a quote that is never closed"
        return data[: data.find(b"\n") + 1 or len(data)], text
    if fault.at:
        return data[: fault.at], None
    line = data.find(b"\n") + 1
    if line or ended:
        return data[: line or len(data)], fault.text
    return None
