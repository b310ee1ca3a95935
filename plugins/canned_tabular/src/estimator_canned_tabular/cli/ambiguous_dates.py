"""Columns of dates in an ambiguous form: they are read as words, and the command says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.cli.schema import Schema

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_FORMS = (
    r"\d{4}([/.-])\d\d?\1\d\d?",
    r"\d\d?([/.-])\d\d?\2\d{4}",
    r"\d\d?/\d\d?/\d\d",
    rf"\d\d?[ -]?{_MONTH}[ -]?\d\d(?:\d\d)?",
    rf"{_MONTH} \d\d?,? \d{{4}}",
)
_DATE = re.compile(rf"(?:{'|'.join(_FORMS)})(?:[T ].*)?", re.ASCII | re.IGNORECASE)


def other_dates(schema: Schema, profiles: Mapping[str, ColumnProfile]) -> Iterator[str]:
    """Yields a line for each such column, with one of its values.

    Example:
        >>> profile = ColumnProfile()
        >>> profile.add([b"31/01/2024", b"28/02/2024"])
        >>> from estimator_canned_tabular.cli.schema import ColumnSchema
        >>> schema = Schema(label="y", columns={"day": ColumnSchema(kind="vocabulary")})
        >>> list(other_dates(schema, {"day": profile}))  # doctest: +ELLIPSIS
        ["read as words: day, with dates such as '31/01/2024'. Every file and request must write them this way. ..."]
    """
    for name, column in schema.columns.items():
        words = profiles[name].words if column.kind in ("vocabulary", "hash") and name in profiles else {}
        others = [word for word in words if _DATE.fullmatch(word.strip())]
        if not column.dates and others and sum(words[word] for word in others) > sum(words.values()) / 2:
            yield (
                f"read as words: {name}, with dates such as {others[0]!r}. Every file and request must write them "
                "this way. A column with only dates such as 2024-01-31 may use every form of ISO 8601"
            )
