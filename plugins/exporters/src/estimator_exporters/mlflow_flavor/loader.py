"""The loader that MLflow calls by name. It loads an export as an object with `predict`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.export import Feature, LoadedSignature
from estimator_exporters.bundle.loaded import numpy_dtype
from estimator_exporters.bundle.object_arrays import decoded
from estimator_exporters.scoring.columns import columns_of, not_by_row
from estimator_exporters.scoring.incomplete_rows import Treatment
from estimator_exporters.scoring.plan import signature_of

DEFAULT_SIGNATURE = "serving_default"


class Scorer:
    """Scores tables and arrays by a signature.

    Args:
        signature: the signature to call.
        treatment: the treatment of empty fields.
    """

    def __init__(self, signature: LoadedSignature, treatment: Treatment) -> None:
        self._signature = signature
        self._treatment = treatment

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Returns a DataFrame with one column per class and the predicted class, as `estimator predict` writes them.

        Args:
            data: a DataFrame, or arrays by name. Columns that are not inputs are ignored.
            params: not used, because there are no parameters.

        Raises:
            ArgumentError: an input is missing, or has the wrong shape or dtype.
        """
        import pandas as pd

        columns = dict(data) if isinstance(data, Mapping) else {str(name): data[name] for name in data.columns}
        arrays = {
            name: self._array(name, columns[name], feature)
            for name, feature in self._signature.inputs.items()
            if name in columns
        }
        rows = len(next(iter(arrays.values()))) if arrays else 0
        found = columns_of(self._signature(**arrays), rows, not_by_row(self._signature))
        return pd.DataFrame({name: _listed(column) for name, column in found.items()})

    def _array(self, name: str, column: Any, feature: Feature) -> np.ndarray:
        if name in self._treatment.column_defaults and hasattr(column, "fillna"):
            column = column.fillna(self._treatment.column_defaults[name])
        values = np.asarray(column)
        if feature.dtype == "string":
            array = values.astype(object)
        elif values.dtype == object:  # a pandas column of lists
            array = _stacked(name, values.tolist())
        else:
            array = values
        if feature.dtype != "string" and array.dtype == np.float64:  # JSON has one type of number
            array = array.astype(numpy_dtype(feature.dtype)) if numpy_dtype(feature.dtype).kind in "fV" else array
        wide = array.ndim == len(feature.shape) - 1 and feature.shape[1:] == (1,)
        return array[:, None] if wide else array


def _stacked(name: str, rows: list[Any]) -> np.ndarray:
    try:
        return np.stack([np.asarray(row) for row in rows])
    except ValueError as error:
        raise ArgumentError(
            f"input {name!r}: its rows are not arrays of one shape ({error}). Give all rows the same length."
        ) from error


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> Scorer:  # pyright: ignore[reportUnusedFunction]
    """Loads an export. The loader of MLflow calls this function."""
    loaded = ec.export.load(path)
    name = (model_config or {}).get("signature", DEFAULT_SIGNATURE)
    return Scorer(signature_of(loaded, name), Treatment.of(Path(getattr(loaded, "directory", path)), loaded))


def _listed(column: np.ndarray) -> Any:
    """Returns values that JSON can represent: bytes become text, and vectors become lists."""
    if column.dtype.kind == "V":
        column = column.astype(np.float32)
    if column.dtype == object:
        return [decoded(value) for value in column.tolist()]
    return column if column.ndim == 1 else column.tolist()
