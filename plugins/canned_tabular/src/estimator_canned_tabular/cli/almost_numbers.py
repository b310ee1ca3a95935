"""Columns that are read as words although most values look like numbers, such as `3 kg`, `1,5` or `n/a`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from estimator_canned_tabular.cli.csv_form import CsvForm
from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.cli.schema import Schema

#: A column is reported if more than this share of its values are numbers or look like numbers.
_MOST = 0.5
_SIGNS = re.compile(r"[\s$\u20ac\u00a3%]")
_SHOWN = 3


def almost_numbers(schema: Schema, profiles: Mapping[str, ColumnProfile]) -> Iterator[str]:
    """Yields a line for each such column, the label included, with the values that are not numbers.

    Example:
        >>> profile = ColumnProfile()
        >>> profile.add([b"1.5", b"2", b"n/a", b"3"])
        >>> from estimator_canned_tabular.cli.schema import ColumnSchema
        >>> schema = Schema(label="y", columns={"x": ColumnSchema(kind="vocabulary")})
        >>> (line,) = almost_numbers(schema, {"x": profile})
        >>> line.partition(". ")[2]
        'If they mean no value in a CSV file, give --na-values=n/a. Otherwise write numbers'
    """
    read_as_words = [name for name, column in schema.columns.items() if column.kind != "numeric"]
    for name in [*read_as_words, *([schema.label] if schema.classes else [])]:
        words = profiles[name].words if name in profiles else {}
        counted = sum(words.values())
        others = [word for word in words if not _is_number(word)]
        numbers = counted - sum(words[word] for word in others)
        written = sum(words[word] for word in others if _looks_like_a_number(word))
        if not words or numbers + written <= _MOST * counted or _all_numbers(profiles[name]):
            continue
        listed = ", ".join(map(repr, others[:_SHOWN])) + (", ..." if len(others) > _SHOWN else "")
        if written:
            yield f"read as words: {name}, with values such as {listed}. Write numbers plainly, such as 1234.5"
        else:
            told = f"read as words: {name}, of which {numbers} of {counted} values are numbers; the others: {listed}"
            yield f"{told}. {_cure(others)}"


def _cure(others: list[str]) -> str:
    if len(others) > _SHOWN or any("," in text for text in others):
        return "Leave those empty, or write numbers"
    told = shlex.join(CsvForm(na_values=tuple(others)).told)
    return f"If they mean no value in a CSV file, give {told}. Otherwise write numbers"


def _all_numbers(profile: ColumnProfile) -> bool:
    """Returns whether the column is an identifier, which is left out although all its values are numbers."""
    return profile.numbers


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _looks_like_a_number(word: str) -> bool:
    plain = _SIGNS.sub("", word)
    return _is_number(plain) or _is_number(plain.replace(",", "")) or _is_number(plain.replace(",", "."))
