"""Reads the fields of a protocol-buffer message without its schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

from estimator_core.errors import CheckpointCorruptError

#: The values of a message by field number: numbers, and bytes of strings, messages and packed numbers.
Fields: TypeAlias = "dict[int, list[int | bytes]]"

_FIXED = {1: 8, 5: 4}


def fields(message: bytes) -> Fields:
    """Returns the fields of a message.

    Raises:
        CheckpointCorruptError: the bytes end in the middle of a field, or are not a message.

    Example:
        >>> fields(bytes([0x08, 0xAC, 0x02, 0x12, 0x02]) + b"ab")
        {1: [300], 2: [b'ab']}
    """
    found: Fields = {}
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(message, place)
        elif kind == 2 or kind in _FIXED:
            length, place = _varint(message, place) if kind == 2 else (_FIXED[kind], place)
            value, place = message[place : place + length], place + length
        else:
            raise CheckpointCorruptError(f"field {tag >> 3} has the unknown wire type {kind}")
        if place > len(message):
            raise CheckpointCorruptError(f"field {tag >> 3} ends after the last byte")
        found.setdefault(tag >> 3, []).append(value)
    return found


def text(found: Fields, number: int) -> str:
    """Returns the last string of a field, or "" if there is none."""
    value = found.get(number, [b""])[-1]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def texts(found: Fields, number: int) -> tuple[str, ...]:
    """Returns all strings of a field."""
    return tuple(value.decode("utf-8", "replace") for value in contents(found, number))


def contents(found: Fields, number: int) -> list[bytes]:
    """Returns the bytes of a field, for example its messages."""
    return [value for value in found.get(number, []) if isinstance(value, bytes)]


def message(found: Fields, number: int) -> Fields:
    """Returns the last message of a field, empty if there is none."""
    return fields((contents(found, number) or [b""])[-1])


def entries(found: Fields, number: int) -> dict[str, bytes]:
    """Returns a map from strings to messages."""
    pairs = (fields(entry) for entry in contents(found, number))
    return {text(pair, 1): (contents(pair, 2) or [b""])[-1] for pair in pairs}


def integer(found: Fields, number: int) -> int:
    """Returns the last number of a field, signed, or 0 if there is none."""
    return (integers(found, number) or [0])[-1]


def integers(found: Fields, number: int) -> list[int]:
    """Returns the numbers of a field, signed, packed or not."""
    return [_signed(value) for value in _unpacked(found, number)]


def reals(found: Fields, number: int, code: str) -> list[float]:
    """Returns the floats of a field, packed or not. `code` is that of `struct`: "f" or "d"."""
    return [value for (value,) in struct.iter_unpack(f"<{code}", b"".join(contents(found, number)))]


def _unpacked(found: Fields, number: int) -> Iterator[int]:
    for value in found.get(number, []):
        place = 0
        while isinstance(value, bytes) and place < len(value):
            one, place = _varint(value, place)
            yield one
        if isinstance(value, int):
            yield value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    result = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, place
        shift += 7
    raise CheckpointCorruptError(f"a number at byte {place} has no end")
