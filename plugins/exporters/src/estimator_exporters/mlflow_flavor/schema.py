"""The inputs of an export as an MLflow schema: columns of a table, or tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator_core.export import Feature

_COLUMNS = {
    "string": "string",
    "bool": "boolean",
    "float64": "double",
    "int64": "long",
    "uint32": "long",
    "uint64": "long",
    "float32": "float",
    "float16": "float",
    "bfloat16": "float",
}


def is_table(inputs: Mapping[str, Feature]) -> bool:
    """Returns whether each input is one value per row.

    Example:
        >>> is_table({"a": Feature((None,)), "b": Feature((None, 1))}), is_table({"x": Feature((None, 3))})
        (True, False)
    """
    return all(feature.shape[1:] in ((), (1,)) for feature in inputs.values())


def column_type(dtype: str) -> str:
    """Returns the column type of a dtype. Narrow integers become `integer`, and the export checks their range.

    Example:
        >>> column_type("float32"), column_type("int8")
        ('float', 'integer')
    """
    return _COLUMNS.get(dtype, "integer")


def model_signature(inputs: Mapping[str, Feature]) -> Any:
    """Returns the MLflow signature of the inputs."""
    from mlflow.models import ModelSignature  # pyright: ignore[reportMissingImports]
    from mlflow.types import ColSpec, Schema, TensorSpec  # pyright: ignore[reportMissingImports]

    if is_table(inputs):
        return ModelSignature(Schema([ColSpec(column_type(one.dtype), name) for name, one in inputs.items()]))
    tensors = [
        TensorSpec(_numpy(feature.dtype), tuple(-1 if size is None else size for size in feature.shape), name)
        for name, feature in inputs.items()
    ]
    return ModelSignature(Schema(tensors))


def _numpy(dtype: str) -> np.dtype[Any]:
    """Returns a dtype that MLflow supports: str for text, and float32 for bfloat16 and the float8 types."""
    if dtype == "string":
        return np.dtype(str)
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype("float32")
