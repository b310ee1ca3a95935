"""Columns whose words are all unknown, because the rows are spelled differently from those of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.host.spelling import spelling_of
from estimator_core.errors import ArgumentError

_SHOWN = 3
#: The maximum number of unknown words of a column that are compared. The first ones are kept.
_KEPT = 100


class UnknownWords:
    """The vocabulary columns in which no known word has occurred yet.

    Args:
        schema: the schema of the columns.

    Example:
        >>> from estimator_canned_tabular.cli.schema import ColumnSchema
        >>> column = ColumnSchema(kind="vocabulary", words=("Oslo", "Rome"))
        >>> words = UnknownWords(Schema(label="y", columns={"city": column}))
        >>> words.look({"city": np.array([b"Lima", b""], object)})
        >>> list(words.told("test rows"))
        ["unknown: no word of city in the test rows is in its vocabulary: found 'Lima', expected 'Oslo', 'Rome'"]
    """

    def __init__(self, schema: Schema) -> None:
        words = {name: column.words for name, column in schema.columns.items() if column.kind == "vocabulary"}
        self._words = words
        self._spellings = {name: spelling_of(schema.columns[name]) for name in words}
        self._known = {name: self._forms(name, (word.encode() for word in of)) for name, of in words.items()}
        self._strange: dict[str, set[bytes]] = {name: set() for name in words}

    def look(self, features: Mapping[str, np.ndarray]) -> None:
        """Checks a batch."""
        for name in [*self._strange]:
            found = {word for word in features[name].tolist() if word} if name in features else set[bytes]()
            if not self._forms(name, found).isdisjoint(self._known[name]):
                del self._strange[name]
            elif len(self._strange[name]) < _KEPT:
                self._strange[name] |= found

    def _forms(self, name: str, words: Iterable[bytes]) -> frozenset[bytes]:
        """Returns the words, with dates and truth values in one form."""
        spelling = self._spellings[name]
        return frozenset(words if spelling is None else ((spelling.canonical(word) or word) for word in words))

    def told(self, where: str) -> Iterator[str]:
        """Yields a line for each such column.

        Raises:
            ArgumentError: the words are those of the vocabulary in another spelling.
        """
        for name, found in self._strange.items():
            if not found:
                continue
            strange = sorted(word.decode(errors="backslashreplace") for word in found)
            said = (
                f"no word of {name} in the {where} is in its vocabulary: found {_listed(strange)}, expected "
                f"{_listed(self._words[name])}"
            )
            folded = {_folded(word) for word in self._words[name]}
            if all(_folded(word) in folded for word in strange):
                raise ArgumentError(f"The rows use another spelling: {said}. Spell the words as the vocabulary does.")
            yield f"unknown: {said}"


def _folded(word: str) -> str:
    return word.strip().casefold()


def _listed(words: list[str] | tuple[str, ...]) -> str:
    return ", ".join(map(repr, words[:_SHOWN])) + (", ..." if len(words) > _SHOWN else "")
