"""Quotes in a piece of a CSV file: the ends of records, and misplaced quotes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_NEWLINE, _RETURN = ord("\n"), ord("\r")


class QuoteFault(NamedTuple):
    """A misplaced quote.

    Attributes:
        at: the place where the record with the quote begins.
        text: the description of the fault.
    """

    at: int
    text: str


def last_record_end(data: bytes, quote: bytes | None) -> int:
    """Returns the position after the last newline outside quotes, or 0 if there is none."""
    end = data.rfind(b"\n") + 1
    if quote is None or quote not in data:
        return end
    ends = record_ends(data, quote)
    return int(ends[-1]) if ends.size else 0


def record_ends(data: bytes, quote: bytes | None) -> np.ndarray:
    """Returns the positions after all newlines outside quotes as int64."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets == _NEWLINE)
    if quote is not None and quote in data:
        quotes = np.flatnonzero(octets == quote[0])
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return ends + 1


def newlines_in(data: bytes) -> int:
    r"""Returns the number of newlines, including those in quotes.

    Example:
        >>> newlines_in(b'a,b\n"c\n",d')
        2
    """
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))  # `bytes.count` takes five times as long


def rows_in(data: bytes, quote: bytes | None) -> int:
    r"""Returns the number of non-empty records in `data`, which begins with a record.

    Example:
        >>> rows_in(b'a,b\n\r\n"c\n",d', b'"')
        2
    """
    ends = record_ends(data, quote)
    if not ends.size or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    begins = np.append(0, ends[:-1])
    head = np.frombuffer(data, np.uint8)[begins]
    return len(ends) - int(np.sum((head == _NEWLINE) | ((head == _RETURN) & (ends - begins <= 2))))


def quote_fault(data: bytes, quote: bytes, delimiter: bytes, *, ended: bool) -> QuoteFault | None:
    """Returns the first fault of the quotes in `data`, which begins with a record, or None.

    Quotes must enclose a whole field, and a quote in a quoted field must be doubled.

    Args:
        data: a piece of a file.
        quote: the quote, one byte.
        delimiter: the delimiter, one byte.
        ended: whether the file ends with `data`. A quote that is open at the end is then a fault.
    """
    if quote not in data:
        return None
    octets = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(octets == quote[0])
    before = np.where(quotes > 0, octets[quotes - 1], _NEWLINE)
    after = np.append(octets, _NEWLINE)[quotes + 1]
    wrong = np.zeros(len(quotes), bool)
    opening, closing = before[::2], after[1::2]
    wrong[::2] = ~np.isin(opening, (_NEWLINE, delimiter[0], quote[0]))
    wrong[1::2] = ~np.isin(closing, (_NEWLINE, _RETURN, delimiter[0], quote[0]))
    first = np.flatnonzero(wrong)
    if first.size:
        number = int(first[0])
        # a misplaced closing quote: the quote before it was not closed
        at = int(quotes[number - number % 2])
        text = "a quote inside a field that does not begin with one" if number % 2 == 0 else "a quote is not closed"
        return QuoteFault(last_record_end(data[:at], quote), text)
    if ended and len(quotes) % 2:
        return QuoteFault(last_record_end(data, quote), "a quote is not closed before the file ends")
    return None
