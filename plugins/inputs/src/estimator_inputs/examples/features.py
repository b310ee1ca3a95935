"""What a feature of a tf.Example is: the specifications that readers, receivers and feature columns share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FixedLenFeature:
    """A feature of a tf.Example with the same number of values in every record.

    Args:
        shape: the shape of one example.
        dtype: "int64", "float32", "string", or a narrower number its values fit into.
        default_value: the value for records without the feature; None: they are refused.

    Example:
        >>> FixedLenFeature((2,), "float32").shape
        (2,)

    Source: `tf.io.FixedLenFeature`.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    default_value: Any = None


@dataclass(frozen=True)
class VarLenFeature:
    """A feature of a tf.Example with any number of values, none included.

    Readers give it dense, [batch, longest], filled up with what feature columns ignore: -1 in integers, b"" in strings,
    0 in floats.

    Args:
        dtype: "int64", "float32", "string", or a narrower number its values fit into.

    Example:
        >>> VarLenFeature("string").dtype
        'string'

    Source: `tf.io.VarLenFeature`.
    """

    dtype: str


@dataclass(frozen=True)
class FixedLenSequenceFeature:
    """A feature of a tf.Example that is a sequence of any length of items of one shape.

    Readers give it dense, [batch, longest, *shape].

    Args:
        shape: the shape of one item.
        dtype: "int64", "float32", "string", or a narrower number its values fit into.
        allow_missing: a record that lacks it has an empty sequence; False: such a record is refused.
        default_value: fills up shorter sequences; None: 0, or b"" in strings.

    Example:
        >>> FixedLenSequenceFeature((2,), "float32").allow_missing
        True

    Source: `tf.io.FixedLenSequenceFeature`.
    """

    shape: tuple[int, ...]
    dtype: str
    allow_missing: bool = True
    default_value: Any = None
