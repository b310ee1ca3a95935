"""`Fingerprint64` in a graph: an operator of onnxruntime-extensions, for ONNX has none that sees the bytes of text.

Since version 0.15 its operator of this name is another hash. So a graph asks for a hash that is known, and ends with an
error where the answer differs.
"""

from __future__ import annotations

from estimator_exporters.onnx.nodes import STRING, Nodes, Value

#: The domain of the operators of onnxruntime-extensions.
EXTENSIONS = "ai.onnx.contrib"
#: What a reader installs.
PACKAGE = "onnxruntime-extensions>=0.13,<0.15"
# The operator divides by an unsigned number. -1 is the largest: what is left of a hash is the hash.
_WHOLE = -1
_KNOWN = (b"Fingerprint64", -0x7E85F57D6CA3173F)
_WRONG = f"hashes are others here: install {PACKAGE}"


def buckets(nodes: Nodes, value: Value, count: int) -> str:
    """`Fingerprint64(value) % count` as int64, with integers as decimal digits."""
    text = value.name if value.dtype == STRING else nodes.cast(value.name, STRING)
    known, bits = _KNOWN
    answer = _hashed(nodes, nodes.constant([known], STRING), _WHOLE)
    same = nodes.add("Equal", answer, nodes.constant([bits], "int64"))
    place = nodes.add("Where", same, nodes.constant([0], "int64"), nodes.constant([1], "int64"))
    nothing = nodes.add("Gather", nodes.constant([0], "int64"), place, title=_WRONG)  # there is no place 1
    return nodes.add("Add", _hashed(nodes, text, count), nothing)


def fingerprints(nodes: Nodes, value: Value) -> str:
    """The bits of `Fingerprint64(value)` as int64."""
    return buckets(nodes, value, _WHOLE)


def _hashed(nodes: Nodes, text: str, count: int) -> str:
    return nodes.add("StringToHashBucketFast", text, nodes.constant([count], "int64"), domain=EXTENSIONS)
