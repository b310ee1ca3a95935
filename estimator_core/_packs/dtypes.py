"""The dtypes that a checkpoint can hold, by name."""

from __future__ import annotations

import functools

import numpy as np

from estimator_core.errors import CheckpointError

#: Kinds of numpy's own dtypes: booleans, integers, real and complex numbers.
_KINDS = "biufc"


@functools.cache
def dtype_named(name: str) -> np.dtype:
    """Returns the dtype of a name, which is one of numpy, or one of ml_dtypes such as bfloat16 or int4.

    Raises:
        CheckpointError: no numeric dtype has this name.

    Example:
        >>> dtype_named("float32"), dtype_named("bfloat16").itemsize
        (dtype('float32'), 2)
    """
    found = _numpys(name)
    if found is not None:
        return found
    import ml_dtypes  # has bfloat16, the 8-bit floats, the 4-bit integers

    scalar = getattr(ml_dtypes, name, None)
    if isinstance(scalar, type) and issubclass(scalar, np.generic) and np.dtype(scalar).name == name:
        return np.dtype(scalar)
    raise CheckpointError(
        f"A checkpoint holds numbers and booleans; {name[:60]!r} is not one of their dtypes in numpy or "
        f"ml_dtypes {ml_dtypes.__version__}."
    )


def _numpys(name: str) -> np.dtype | None:
    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    return found if found.kind in _KINDS and found.name == name else None


def little_endian(array: np.ndarray) -> np.ndarray:
    """Returns an array with the lowest byte of each number first; the same object if it already has this order."""
    if array.dtype.kind not in _KINDS:
        return array
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
