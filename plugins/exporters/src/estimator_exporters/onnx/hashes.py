"""`Fingerprint64` in a graph. The operator is from onnxruntime-extensions, because ONNX cannot read the bytes of text.

Since version 0.15, the operator of this name computes another hash. A graph therefore computes a known hash, and fails
if the result differs.
"""

from __future__ import annotations

from estimator_exporters.onnx.nodes import STRING, Nodes, Value

#: The domain of the operators of onnxruntime-extensions.
EXTENSIONS = "ai.onnx.contrib"
#: The requirement that a reader installs.
PACKAGE = "onnxruntime-extensions>=0.13,<0.15"
# The operator returns the remainder of an unsigned division. -1 is the largest divisor, so the remainder is the hash.
_WHOLE = -1
_KNOWN = (b"Fingerprint64", -0x7E85F57D6CA3173F)
_WRONG = f"hashes differ here: install {PACKAGE}"


def buckets(nodes: Nodes, value: Value, count: int) -> str:
    """Writes `Fingerprint64(value) % count` as int64. Integers are hashed as decimal digits."""
    text = value.name if value.dtype == STRING else nodes.cast(value.name, STRING)
    known, bits = _KNOWN
    answer = _hashed(nodes, nodes.constant([known], STRING), _WHOLE)
    same = nodes.add("Equal", answer, nodes.constant([bits], "int64"))
    place = nodes.add("Where", same, nodes.constant([0], "int64"), nodes.constant([1], "int64"))
    nothing = nodes.add("Gather", nodes.constant([0], "int64"), place, title=_WRONG)  # index 1 is out of range
    return nodes.add("Add", _hashed(nodes, text, count), nothing)


def fingerprints(nodes: Nodes, value: Value) -> str:
    """Writes the bits of `Fingerprint64(value)` as int64."""
    return buckets(nodes, value, _WHOLE)


def _hashed(nodes: Nodes, text: str, count: int) -> str:
    return nodes.add("StringToHashBucketFast", text, nodes.constant([count], "int64"), domain=EXTENSIONS)
