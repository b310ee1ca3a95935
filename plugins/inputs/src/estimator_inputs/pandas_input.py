"""`pandas_input_fn`: batches of a DataFrame's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import ArrayInput, numpy_input_fn

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
    """An input_fn over the columns of a DataFrame; see `numpy_input_fn` for order, epochs and positions.

    The columns are copied when this is called. Text and categories become object arrays (host features), nullable
    integers and booleans with missing values become floats with NaN.

    Args:
        x: one feature in each column, with text as its name.
        y: the labels: a Series, or a DataFrame for a dict of labels; its index must equal that of x.
        batch_size: examples a batch, in each process.
        num_epochs: passes over the data; None repeats for ever.
        shuffle: must be given: True for training, False for evaluation and prediction.
        seed: the seed of the permutations.
        drop_remainder: leaves out a short last batch.
        ragged: "exact" or "pad".
        target_column: a name that is not a column of x, if y is given.

    Raises:
        ArgumentError: see `numpy_input_fn`; indexes that differ; a column twice.
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
        if not np.array_equal(x.index, y.index):
            raise ArgumentError(
                f"Index for x and y are mismatched.\nIndex for x: {x.index}\nIndex for y: {y.index}\n"
                "Align them (y = y.loc[x.index]), or reset both (reset_index(drop=True))."
            )
        labels = _columns("y", y) if y.ndim == 2 else _values(y)
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
        raise ArgumentError(f"{argument} has columns of one name: {twice}. Rename them.")
    return {name: _values(frame.iloc[:, index]) for index, name in enumerate(names)}


def _values(series: Any) -> np.ndarray:
    """A copy, so that later changes of the frame do not reach the input."""
    kind = series.dtype.kind
    if not hasattr(series.dtype, "numpy_dtype") or kind not in "iufb":
        return np.array(series.to_numpy())
    if not series.isna().any():
        return np.array(series.to_numpy(dtype=series.dtype.numpy_dtype))
    dtype = series.dtype.numpy_dtype if kind == "f" else np.float64  # integers have no missing value
    return np.array(series.to_numpy(dtype=dtype, na_value=np.nan))
