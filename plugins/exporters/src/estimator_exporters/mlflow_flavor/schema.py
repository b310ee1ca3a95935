"""What an export takes, in MLflow's words: columns of a table, or tensors."""

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
    """Whether each input is one value a row.

    Example:
        >>> is_table({"a": Feature((None,)), "b": Feature((None, 1))}), is_table({"x": Feature((None, 3))})
        (True, False)
    """
    return all(feature.shape[1:] in ((), (1,)) for feature in inputs.values())


def column_type(dtype: str) -> str:
    """The type of a column for a dtype; narrow integers are `integer`, which the export takes within their range.

    Example:
        >>> column_type("float32"), column_type("int8")
        ('float', 'integer')
    """
    return _COLUMNS.get(dtype, "integer")


def model_signature(inputs: Mapping[str, Feature]) -> Any:
    """MLflow's signature of the inputs."""
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
    """What MLflow knows: text as str, bfloat16 and its kin as float32."""
    if dtype == "string":
        return np.dtype(str)
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype("float32")
