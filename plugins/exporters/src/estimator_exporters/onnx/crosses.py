"""The hash of combinations of integers: 64-bit arithmetic that wraps in int64."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from estimator_exporters.onnx.nodes import Nodes

_FACTOR = 0xC6A4A7935BD1E995


def cross(nodes: Nodes, words: Sequence[str], widths: Sequence[int], key: int, buckets: int) -> str:
    """Writes `FingerprintCat64` of each combination of one place per input, the last one fastest, modulo `buckets`."""
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
