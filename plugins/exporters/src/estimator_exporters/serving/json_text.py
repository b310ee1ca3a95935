"""Reads strict JSON from bytes in slices, so that a long text does not block other threads.

`json.loads` reads a text in one call, and no other Python thread runs during the call. For 60 MB this takes seconds.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from estimator_exporters.serving.refusals import BadRequestError, TooLargeError

NON_FINITE = ("NaN", "Infinity", "-Infinity")
_SMALL = 2**16  # bytes that are read in one call
_MEGABYTE = 2**20
_FLAT = re.compile(r'[^\[\]{}"]{1,32768}')
_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DEPTH = 64
# The bytes of memory that Python uses for a value with its place in a list, and in addition for an object.
_VALUE, _OBJECT = 72, 200


def read_json(
    content: bytes | bytearray | memoryview,
    *,
    values: int = 2**23,
    charge: Callable[[int], None] = lambda count: None,
    literals: bool = False,
) -> Any:
    """Returns the content of a JSON text.

    Args:
        content: the text in UTF-8.
        values: the largest number of values.
        charge: called with the bytes of memory that the content needs, before they are used.
        literals: whether `NaN` and `Infinity` are accepted. They are not JSON.

    Raises:
        BadRequestError: the text is not UTF-8, is not JSON, or contains half a surrogate pair.
        TooLargeError: the text has too many values.

    Example:
        >>> read_json(b'{"x": [1, 2.5]}')
        {'x': [1, 2.5]}
    """
    decoder = _LENIENT if literals else _STRICT
    try:
        if len(content) <= _SMALL:
            text = str(content, "utf-8")
            found = decoder.decode(text)
        else:
            charge(_cost(content, values))
            text = _text(content)
            found = _Reader(text, decoder).whole()
    except UnicodeDecodeError as error:
        raise BadRequestError(f"the request is not JSON: byte {error.start} is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the request is not JSON: {str(error)[:200]}") from error
    if _SURROGATE.search(text):
        _check_surrogates(found)
    return found


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not a JSON value; send the string {json.dumps(literal)}")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
_LENIENT = json.JSONDecoder()


def _cost(content: bytes | bytearray | memoryview, values: int) -> int:
    """Returns an upper bound for the bytes of memory that the text and its content need.

    Raises:
        TooLargeError: there are more values than `values`.
    """
    raw = np.frombuffer(content, np.uint8)
    count = objects = 0
    ascii_only = True
    for start in range(0, len(raw), _MEGABYTE):
        piece = raw[start : start + _MEGABYTE]
        opened = int(np.count_nonzero(piece == ord("{")))
        count += int(np.count_nonzero(piece == ord(","))) + int(np.count_nonzero(piece == ord("["))) + opened
        objects += opened
        ascii_only = ascii_only and int(piece.max()) < 128
        if count > values:
            raise TooLargeError(f"the JSON has more than {values} values; send large tensors in binary")
    width = 1 if ascii_only else 4
    return 2 * width * len(raw) + _VALUE * count + _OBJECT * objects


def _text(content: bytes | bytearray | memoryview) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(content)
    pieces = [decoder.decode(view[start : start + _MEGABYTE]) for start in range(0, len(view), _MEGABYTE)]
    return "".join([*pieces, decoder.decode(b"", final=True)])


class _Reader:
    """Reads a text by slices. The decoder reads runs of numbers and the contents of brackets.

    Args:
        text: the JSON text.
        decoder: the decoder that reads a slice.
    """

    def __init__(self, text: str, decoder: json.JSONDecoder) -> None:
        self._text = text
        self._decoder = decoder

    def whole(self) -> Any:
        """Returns the only value of the text."""
        found, at = self._value(0, 0)
        if self._space(at) != len(self._text):
            raise ValueError(f"more text follows at character {at}")
        return found

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self._space(at)
        first = self._text[at : at + 1]
        if depth > _DEPTH:
            raise ValueError(f"it is nested more than {_DEPTH} deep")
        if first == "[":
            return self._array(at + 1, depth + 1)
        if first == "{":
            return self._object(at + 1, depth + 1)
        return self._decoder.raw_decode(self._text, at)

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        text, found = self._text, list[Any]()
        if text[(empty := self._space(at)) : empty + 1] == "]":
            return found, empty + 1
        while True:
            run = _FLAT.match(text, at)
            if run is not None:
                piece, end = run.group(), run.end()
                last = text[end : end + 1] == "]"
                piece = piece if last else piece[: max(0, piece.rfind(","))]
                if piece.strip(" \t\n\r"):
                    found += self._decoder.decode(f"[{piece}]")
                    if last:
                        return found, end + 1
                    at += len(piece) + 1
                    continue
            value, at = self._value(at, depth)
            found.append(value)
            at, more = self._after(at, "]")
            if not more:
                return found, at

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        if self._text[(empty := self._space(at)) : empty + 1] == "}":
            return found, empty + 1
        while True:
            at = self._space(at)
            if self._text[at : at + 1] != '"':
                raise ValueError(f"a name in double quotes is missing at character {at}")
            name, at = self._decoder.raw_decode(self._text, at)
            at = self._space(at)
            if self._text[at : at + 1] != ":":
                raise ValueError(f"':' is missing at character {at}")
            found[name], at = self._value(at + 1, depth)
            at, more = self._after(at, "}")
            if not more:
                return found, at

    def _after(self, at: int, closing: str) -> tuple[int, bool]:
        """Returns the position where reading continues, and whether another value follows."""
        at = self._space(at)
        character = self._text[at : at + 1]
        if character not in (",", closing) or not character:
            raise ValueError(f"',' or '{closing}' is missing at character {at}")
        return at + 1, character == ","

    def _space(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        assert found is not None
        return found.end()


def _check_surrogates(value: Any) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadRequestError("the request holds half a surrogate pair, which is not a character") from error
    elif isinstance(value, list):
        for one in value:
            _check_surrogates(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            _check_surrogates(name)
            _check_surrogates(one)
