"""Shape and dtype of one input or output of a signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class Feature:
    """An array that a signature takes or returns.

    Args:
        shape: sizes; None in the first place is the batch, of any size of at least 1.
        dtype: a numpy dtype or its name, "bfloat16", or "string" for host-side text.

    Raises:
        ArgumentError, ArgumentTypeError: for shapes and dtypes that cannot be used.

    Example:
        >>> Feature((None, 16), "float32")
        Feature(shape=(None, 16), dtype='float32')
    """

    shape: tuple[int | None, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if isinstance(self.shape, (str, int)) or not isinstance(self.shape, Sequence):
            raise ArgumentTypeError(f"Feature: shape must be a tuple such as (None, 16), given: {self.shape!r}.")
        shape = tuple(self.shape)
        if any(
            size is not None and (isinstance(size, bool) or not hasattr(size, "__index__") or size < 0)
            for size in shape
        ):
            raise ArgumentError(f"Feature: sizes must be integers >= 0, or None for the batch; given: {shape}.")
        if None in shape[1:]:
            raise ArgumentError(f"Feature: only the first size may be None (the batch); given: {shape}.")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))


def feature_of(value: Any) -> Feature:
    """The Feature of an array (its first axis is the batch), or the given Feature."""
    if isinstance(value, Feature):
        return value
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Feature((None, *value.shape[1:]) if len(value.shape) else (), str(value.dtype))
    raise ArgumentTypeError(f"Give an ec.export.Feature((None, ...), dtype) or an example array, not {value!r}.")


def _dtype_name(dtype: Any) -> str:
    if dtype in ("string", "bfloat16"):
        return dtype
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentTypeError(
            f"Feature: {dtype!r} is not a dtype. Use a numpy dtype, 'bfloat16' or 'string'."
        ) from error
    return "string" if found.kind in "USO" else found.name
