"""Random damage to files: bytes changed, left out or inserted, and files cut off."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Mutation = Callable[[np.random.Generator, bytes], bytes]


def flip_a_bit(generator: np.random.Generator, data: bytes) -> bytes:
    place = int(generator.integers(len(data)))
    return data[:place] + bytes([data[place] ^ (1 << int(generator.integers(8)))]) + data[place + 1 :]


def change_bytes(generator: np.random.Generator, data: bytes) -> bytes:
    begin, size = _range(generator, data)
    return data[:begin] + generator.bytes(size) + data[begin + size :]


def leave_out(generator: np.random.Generator, data: bytes) -> bytes:
    begin, size = _range(generator, data)
    return data[:begin] + data[begin + size :]


def put_in(generator: np.random.Generator, data: bytes) -> bytes:
    begin, size = _range(generator, data)
    return data[:begin] + generator.bytes(size) + data[begin:]


def repeat(generator: np.random.Generator, data: bytes) -> bytes:
    begin, size = _range(generator, data)
    return data[: begin + size] + data[begin:]


def zeros(generator: np.random.Generator, data: bytes) -> bytes:
    begin, size = _range(generator, data)
    return data[:begin] + b"\0" * size + data[begin + size :]


def cut_off(generator: np.random.Generator, data: bytes) -> bytes:
    return data[: int(generator.integers(len(data)))]


def text_in_places(generator: np.random.Generator, data: bytes) -> bytes:
    """Inserts text that is difficult for text formats: delimiters, quotes, line ends, bytes that are not UTF-8."""
    for _ in range(int(generator.integers(1, 4))):
        place = int(generator.integers(len(data)))
        word = (b",", b'"', b"\n", b"\r", b"\xff", b"\xff,", b"{", b"}", b"[", b"\\", b"\0", b"-", b"e9", b"nan")
        data = data[:place] + word[int(generator.integers(len(word)))] + data[place + int(generator.integers(2)) :]
    return data


MUTATIONS: tuple[Mutation, ...] = (
    flip_a_bit,
    change_bytes,
    leave_out,
    put_in,
    repeat,
    zeros,
    cut_off,
    text_in_places,
)


def mutated(seed: int, data: bytes) -> bytes:
    """The mutation with this number. It always differs from the data."""
    generator = np.random.default_rng(seed)
    while True:
        found = MUTATIONS[seed % len(MUTATIONS)](generator, data)
        if found != data:
            return found


def _range(generator: np.random.Generator, data: bytes) -> tuple[int, int]:
    size = int(min(generator.geometric(0.05), len(data) - 1))
    return int(generator.integers(len(data) - size)), size
