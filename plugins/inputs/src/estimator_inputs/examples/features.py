"""Specifications of tf.Example features, for readers, receivers and feature columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FixedLenFeature:
    """A feature of a tf.Example with the same number of values in every record.

    Args:
        shape: the shape of one example.
        dtype: "int64", "float32", "string", or a narrower number type that holds the values.
        default_value: the value for records without the feature. None: such records are refused.

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
    """A feature of a tf.Example with any number of values, including none.

    Readers return a dense array, [batch, longest], padded with values that feature columns ignore: -1 for integers, b""
    for strings, 0 for floats.

    Args:
        dtype: "int64", "float32", "string", or a narrower number type that holds the values.

    Example:
        >>> VarLenFeature("string").dtype
        'string'

    Source: `tf.io.VarLenFeature`.
    """

    dtype: str


@dataclass(frozen=True)
class FixedLenSequenceFeature:
    """A feature of a tf.Example that is a sequence of items of one shape, of any length.

    Readers return a dense array, [batch, longest, *shape].

    Args:
        shape: the shape of one item.
        dtype: "int64", "float32", "string", or a narrower number type that holds the values.
        allow_missing: whether a record without the feature has an empty sequence. False: such a record is refused.
            None: True for a feature, False for a feature list of tf.SequenceExamples, as in TensorFlow.
        default_value: pads shorter sequences. None: 0, or b"" for strings.

    Example:
        >>> FixedLenSequenceFeature((2,), "float32", allow_missing=True).allow_missing
        True

    Source: `tf.io.FixedLenSequenceFeature`.
    """

    shape: tuple[int, ...]
    dtype: str
    allow_missing: bool | None = None
    default_value: Any = None
