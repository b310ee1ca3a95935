"""`pandas_input_fn`: batches of the columns of a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import ArrayInput, numpy_input_fn
from estimator_inputs.table.rounding import rounded

if TYPE_CHECKING:
    import pandas as pd


def pandas_input_fn(
    x: pd.DataFrame,
    y: pd.Series | pd.DataFrame | None = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    *,
    seed: int | None = None,
    drop_remainder: bool = False,
    ragged: Literal["exact", "pad"] = "exact",
    target_column: str = "target",
) -> ArrayInput:
    """Returns an input_fn over the columns of a DataFrame. See `numpy_input_fn` for order, epochs and positions.

    The call copies the columns. Text and categories become object arrays (host features), with None for pandas.NA.
    Nullable integers and booleans with missing values become floats with NaN, and so do decimals of Arrow.

    Args:
        x: a DataFrame with one feature per column. Column names must be texts.
        y: the labels: a Series, or a DataFrame for a dict of labels. Its index must equal that of x.
        batch_size: examples per batch, in each process.
        num_epochs: the number of passes over the data. None repeats forever.
        shuffle: required: True for training, False for evaluation and prediction.
        seed: the seed of the permutations.
        drop_remainder: whether to drop a short last batch.
        ragged: "exact" or "pad".
        target_column: a name that is not a column of x, if y is given.

    Raises:
        ArgumentError: see `numpy_input_fn`. Also: the indexes differ, a column occurs twice, or floats cannot represent
            integers (in a column with missing values) or decimals without decimal places exactly.
        ArgumentTypeError: x is not a DataFrame, y is neither a Series nor a DataFrame, or target_column is not text.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [20, 30, 40]})
        >>> input_fn = pandas_input_fn(frame, pd.Series([0, 1, 1]), batch_size=2, shuffle=False)
        >>> [(features["age"].tolist(), labels.tolist()) for features, labels in input_fn()]
        [([20, 30], [0, 1]), ([40], [1])]

    Source: tf.compat.v1.estimator.inputs.pandas_input_fn.
    """
    _check_types(x, y, target_column)
    labels: dict[str, np.ndarray] | np.ndarray | None = None
    if y is not None:
        if target_column in x:
            raise ArgumentError(
                f"Cannot use name {target_column} for target column: DataFrame already has a column with that name: "
                f"{list(x.columns)}. Drop the column from x, or name another target_column."
            )
        if not (np.array_equal(x.index, y.index) or x.index.equals(y.index)):  # the second treats NaN as equal to NaN
            raise ArgumentError(
                f"Index for x and y are mismatched.\nIndex for x: {x.index}\nIndex for y: {y.index}\n"
                "Align them (y = y.loc[x.index]), or reset both (reset_index(drop=True))."
            )
        labels = _columns("y", y) if y.ndim == 2 else _values("y", y)
    features = _columns("x", x)
    if not features:
        raise ArgumentError("x cannot be an empty dict: the DataFrame has no columns.")
    return numpy_input_fn(
        features,
        labels,
        batch_size,
        num_epochs,
        shuffle,
        seed=seed,
        drop_remainder=drop_remainder,
        ragged=ragged,
    )


def _check_types(x: Any, y: Any, target_column: Any) -> None:
    if not isinstance(target_column, str):
        raise ArgumentTypeError(f"target_column must be a string type, given: {target_column!r}.")
    if not (hasattr(x, "columns") and hasattr(x, "index")):
        raise ArgumentTypeError(
            f"x must be a pandas DataFrame; got {type(x).__name__}. For arrays: numpy_input_fn; for "
            "polars and Arrow: estimator_inputs.table_input_fn."
        )
    if y is not None and not (hasattr(y, "index") and hasattr(y, "to_numpy")):
        raise ArgumentTypeError(f"y must be a pandas Series or DataFrame; got {type(y).__name__}.")


def _columns(argument: str, frame: Any) -> dict[str, np.ndarray]:
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(f"{argument} has several columns with the same name: {twice}. Rename them.")
    return {name: _values(f"{argument}[{name!r}]", frame.iloc[:, index]) for index, name in enumerate(names)}


def _values(name: str, series: Any) -> np.ndarray:
    """Returns a copy, so that later changes of the frame do not affect the input."""
    arrow = getattr(series.dtype, "pyarrow_dtype", None)
    if arrow is not None and str(arrow).startswith("dictionary"):
        return _values(name, series.astype(type(series.dtype)(arrow.value_type)))
    if arrow is not None and str(arrow).startswith("decimal"):  # but not a list of decimals
        return _of_decimals(name, series, whole=arrow.scale <= 0)
    kind = series.dtype.kind
    if not hasattr(series.dtype, "numpy_dtype") or kind not in "iufb":
        values = np.array(series.to_numpy())
        if values.dtype.kind == "f" and kind == "O":  # categories of integers
            _check_exact(name, series)
        return _without_na(values, series) if values.dtype == object else values
    if not series.isna().any():
        return np.array(series.to_numpy(dtype=series.dtype.numpy_dtype))
    if kind in "iu":
        _check_exact(name, series)
    dtype = series.dtype.numpy_dtype if kind == "f" else np.float64  # integers cannot be missing
    return np.array(series.to_numpy(dtype=dtype, na_value=np.nan))


def _without_na(values: np.ndarray, series: Any) -> np.ndarray:
    """Returns the values with None for pandas.NA. A model cannot compare pandas.NA, which is neither true nor false."""
    import pandas as pd

    for row in np.flatnonzero(series.isna().to_numpy()).tolist():
        if values[row] is pd.NA:
            values[row] = None
    return values


def _of_decimals(name: str, series: Any, *, whole: bool) -> np.ndarray:
    """Returns decimals as floats, as in tables. Decimals without decimal places must be exact. Others are rounded."""
    known = series.dropna()
    dtype = _real_dtype()
    if whole:
        found = next(rounded(np.array([int(number) for number in known], object), dtype), None)
        if found is not None:
            raise ArgumentError(
                f"{name} holds decimals, so it becomes {dtype}, which cannot represent {found[1]} of row "
                f"{known.index[found[0]]!r} exactly: different numbers would become equal. Convert the column to "
                "integers (astype('int64')), or to strings (astype('string')) and hash these. "
                "astype('float64') rounds them."
            )
    values = np.full(len(series), np.nan)
    values[series.notna().to_numpy()] = [float(number) for number in known]
    return values


def _real_dtype() -> np.dtype[Any]:
    """Returns the dtype of real numbers on a device."""
    import jax

    return np.dtype(np.float64 if cast(Any, jax.config).jax_enable_x64 else np.float32)


def _check_exact(name: str, series: Any) -> None:
    """Refuses integers in a column with missing values if floats cannot represent them exactly."""
    known = series.dropna()
    numbers = known.to_numpy(dtype=getattr(series.dtype, "numpy_dtype", None))
    dtype = _real_dtype()
    found = next(rounded(numbers, dtype), None) if numbers.dtype.kind in "iu" else None
    if found is not None:
        raise ArgumentError(
            f"{name} has missing values (NaN), so it becomes {dtype}, which cannot represent {found[1]} of row "
            f"{known.index[found[0]]!r} exactly: different numbers would become equal. Fill the values (fillna), "
            "or convert the column to strings (astype('string')) and hash these. astype('float64') rounds them."
        )
