"""The allowed tokens of a column. A row with any other token is bad."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_inputs.reading.ragged import Column, Ragged

#: The number of tokens to compare with an unknown one, of tokens to list if none is similar, and of characters to show.
_COMPARED, _LISTED, _SHOWN = 5000, 5, 60

#: The argument `vocabularies`: allowed strings or integers by column.
Vocabularies = Mapping[str, Collection[Any]]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The allowed tokens of one column.

    Attributes:
        column: the name of the column.
        tokens: bytes objects or integers, in the order of the argument.
    """

    column: str
    tokens: tuple[Any, ...]
    _known: frozenset[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", frozenset(self.tokens))

    @property
    def summary(self) -> str:
        """The number and checksum of the tokens, for the fingerprint of a position.

        Other tokens would make other rows bad.
        """
        return f"{len(self.tokens)}_tokens_{zlib.crc32(repr(sorted(self.tokens)).encode()):08x}"

    def unknown(self, column: Column, prefix: str) -> list[tuple[int, UnknownToken]]:
        """Returns the rows with a token outside the vocabulary, each with its first such token.

        Args:
            column: object[rows, ...] of bytes or integers[rows, ...], or ragged rows of them.
            prefix: the beginning of the message.
        """
        values = column.values if isinstance(column, Ragged) else column
        flat = values.reshape(-1).tolist()
        if self._known.issuperset(flat):  # for good rows, only C code handles the values
            return []
        wrong = np.flatnonzero(~np.fromiter(map(self._known.__contains__, flat), bool, len(flat)))
        items = wrong // (len(flat) // len(values))
        rows = np.repeat(np.arange(len(column)), column.lengths)[items] if isinstance(column, Ragged) else items
        rows, first = np.unique(rows, return_index=True)
        return [
            (row, UnknownToken(prefix=prefix, token=flat[place], vocabulary=self))
            for row, place in zip(rows.tolist(), wrong[first].tolist(), strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class UnknownToken:
    """The message about a token. It searches similar tokens only when it is shown, which is rare for skipped rows.

    Attributes:
        prefix: the beginning of the message.
        token: the token, as bytes or an integer.
        vocabulary: the vocabulary that lacks it.
    """

    prefix: str
    token: Any
    vocabulary: Vocabulary

    def __str__(self) -> str:
        tokens = self.vocabulary.tokens
        near = _near(self.token, tokens)
        if near:
            what = f"nearest in the vocabulary: {', '.join(near)}"
        else:
            listed = ", ".join(map(_shown, tokens[:_LISTED]))
            what = f"the vocabulary has {listed}{f' and {len(tokens) - _LISTED} more' if len(tokens) > _LISTED else ''}"
        return f"{self.prefix}unknown token {_shown(self.token)} ({what}; add it there if it is right)"


def vocabulary_of(column: str, given: Any, dtype: np.dtype[Any], defaults: Iterable[Any] = ()) -> Vocabulary:
    """Checks and returns the vocabulary of a column.

    Args:
        column: the name of the column.
        given: the tokens: strings, bytes or integers without repetition.
        dtype: the dtype of the column. Strings have object.
        defaults: the values of the column for rows without a value.

    Raises:
        ArgumentError, ArgumentTypeError: there are no tokens, tokens repeat, the column cannot hold a token, or a
            default is not a token.

    Example:
        >>> vocabulary_of("size", ["S", "M", "L"], np.dtype(object)).unknown(np.array([b"M", b"m"], object), "")[0][0]
        1
    """
    name = f"vocabularies[{column!r}]"
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Collection):
        raise ArgumentTypeError(f"{name} must be a list of strings or of integers, given: {given!r:.200}.")
    tokens = tuple(_token(name, item) for item in given)
    if not tokens:
        raise ArgumentError(f"{name} is empty: name the tokens that are allowed, or leave the column out.")
    text = isinstance(tokens[0], bytes)
    for token in tokens:
        if isinstance(token, bytes) != text:
            raise ArgumentTypeError(f"{name} holds both strings and integers: {_shown(tokens[0])}, {_shown(token)}.")
    if len(set(tokens)) != len(tokens):
        seen: set[Any] = set()
        twice = next(token for token in tokens if token in seen or seen.add(token))
        raise ArgumentError(f"{name} holds {_shown(twice)} twice.")
    are, other = ("strings", "string") if text else ("integers", "int64")
    if dtype == np.dtype(object) or dtype.kind not in "iu":
        fits = text and dtype == np.dtype(object)
    else:
        limits = np.iinfo(dtype)
        fits = not text
        for token in tokens if fits else ():
            if not limits.min <= token <= limits.max:
                raise ArgumentError(f"{name} holds {token}, which is outside the range of the column's type {dtype}.")
    if not fits:
        kind = "string" if dtype == np.dtype(object) else dtype.name
        raise ArgumentTypeError(
            f"{name} holds {are}, but the column is of type {kind}: give tokens of that type, or read the column as "
            f"{other!r}. A vocabulary holds strings or integers."
        )
    for default in defaults:
        if default not in tokens:
            raise ArgumentError(f"{name} lacks {_shown(default)}, which is the default value: add it, or set another.")
    return Vocabulary(column=column, tokens=tokens)


def _token(name: str, item: Any) -> Any:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    if isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_)):
        return int(item)
    raise ArgumentTypeError(f"{name} must hold strings or integers, given: {item!r:.200} ({type(item).__name__}).")


def _near(token: Any, tokens: tuple[Any, ...]) -> list[str]:
    """Returns at most three tokens: those that differ only in case or blanks, then those with the most similar
    spelling.
    """
    given = _as_text(token)
    texts = {_as_text(known): known for known in tokens}
    plain = given.strip().casefold()
    same = [known for text, known in texts.items() if plain and text.strip().casefold() == plain]
    found = difflib.get_close_matches(given, list(texts)[:_COMPARED], n=3)
    return [_shown(known) for known in dict.fromkeys([*same, *(texts[text] for text in found)])][:3]


def _as_text(token: Any) -> str:
    return token.decode(errors="backslashreplace") if isinstance(token, bytes) else str(token)


def _shown(token: Any) -> str:
    return repr(_as_text(token)[:_SHOWN]) if isinstance(token, bytes) else str(token)
