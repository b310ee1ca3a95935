"""FarmHash and its combination by onnxruntime-extensions and 64-bit arithmetic, which wraps in int64."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from estimator_exporters.onnx.nodes import EXTENSIONS, STRING, Nodes, Value

_HALF = 1 << 62
_FACTOR = 0xC6A4A7935BD1E995


def hash_bucket(nodes: Nodes, value: Value, buckets: int) -> str:
    """`Fingerprint64(value) % buckets`, int64; integers are hashed as decimal digits."""
    text = value.name if value.dtype == STRING else nodes.cast(value.name, STRING)
    return _modulo(nodes, text, buckets)


def _modulo(nodes: Nodes, text: str, buckets: int) -> str:
    count = nodes.constant([buckets], "int64")
    return nodes.add("StringToHashBucketFast", text, count, domain=EXTENSIONS)


def word(nodes: Nodes, value: Value) -> str:
    """What a value is in a cross, 64 bits in int64: an integer as it is, a text by its fingerprint.

    The operator gives a fingerprint modulo a number below 2 ** 63, so it is put together from two of them: with
    `r = h % 2 ** 62` and `s = h % (2 ** 62 - 1)`, `h = q * 2 ** 62 + r` where `q = (s - r) % (2 ** 62 - 1)`.
    """
    if value.dtype != STRING:
        return nodes.cast(value.name, "int64") if value.dtype != "int64" else value.name
    low, other = _modulo(nodes, value.name, _HALF), _modulo(nodes, value.name, _HALF - 1)
    difference = nodes.add("Sub", other, low)
    negative = nodes.add("Less", difference, nodes.constant(0, "int64"))
    wrapped = nodes.add("Add", difference, nodes.constant(_HALF - 1, "int64"))
    high = nodes.add("Where", negative, wrapped, difference)
    return nodes.add("Add", nodes.add("Mul", high, nodes.constant(_HALF, "int64")), low)


def cross(nodes: Nodes, words: Sequence[str], widths: Sequence[int], key: int, buckets: int) -> str:
    """`FingerprintCat64` over every combination of a place of each, the last changing fastest, modulo `buckets`."""
    start = nodes.constant([[_signed(key)]], "int64")
    count = 1

    def joined(made: str, part: tuple[str, int]) -> str:
        nonlocal count
        name, width = part
        left = nodes.add("Unsqueeze", made, nodes.constant([2], "int64"))
        right = nodes.add("Unsqueeze", name, nodes.constant([1], "int64"))
        count *= width
        return nodes.reshape(_combined(nodes, left, right), (count,))

    found = reduce(joined, zip(words, widths, strict=True), start)
    unsigned = nodes.cast(found, "uint64")
    return nodes.cast(nodes.add("Mod", unsigned, nodes.constant(buckets, "uint64")), "int64")


def _combined(nodes: Nodes, first: str, second: str) -> str:
    factor = nodes.constant(_signed(_FACTOR), "int64")

    def mixed(name: str) -> str:
        shifted = nodes.add("BitShift", nodes.cast(name, "uint64"), nodes.constant(47, "uint64"), direction="RIGHT")
        return nodes.add("BitwiseXor", name, nodes.cast(shifted, "int64"))

    scaled = nodes.add("Mul", mixed(nodes.add("Mul", second, factor)), factor)
    both = nodes.add("BitwiseXor", nodes.add("BitwiseXor", first, factor), scaled)
    return mixed(nodes.add("Mul", mixed(nodes.add("Mul", both, factor)), factor))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
