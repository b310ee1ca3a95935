"""The dtypes of columns, under the names that feature specs use."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError

STRING, INT64, FLOAT32 = "string", "int64", "float32"


def dtype_name(dtype: Any, key: str) -> str:
    """Returns `"string"` or the name of a numpy dtype. It also accepts dtypes of TensorFlow.

    Raises:
        ArgumentError: the value is not a dtype.
    """
    dtype = getattr(dtype, "as_numpy_dtype", dtype)
    if isinstance(dtype, str) and dtype == STRING:
        return STRING
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentError(f"dtype of column {key!r} must be a numpy dtype or 'string', given: {dtype!r}.") from error
    return STRING if found.kind in "SUO" else found.name


def string_or_integer(dtype: Any, key: str) -> str:
    """Returns the name of the dtype of a column of categories.

    Raises:
        ArgumentError: the dtype is neither a string nor an integer, or not a dtype.
    """
    name = dtype_name(dtype, key)
    if name != STRING and np.dtype(name).kind not in "iu":
        raise ArgumentError(f"dtype must be string or integer. dtype: {name}, column_name: {key}.")
    return name
