"""`table_input_fn`: batches of a table in memory, of any library: polars, Arrow, DuckDB, the answer of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import ArrayInput, numpy_input_fn
from estimator_inputs.reading.ragged import Ragged
from estimator_inputs.table.arrays import plain_array, to_column
from estimator_inputs.table.types import STRING, check_names, inferred


def table_input_fn(
    table: Any,
    batch_size: int = 128,
    *,
    shuffle: bool,
    label_name: str | None = None,
    select_columns: Sequence[str] | None = None,
    num_epochs: int | None = 1,
    seed: int | None = None,
    drop_remainder: bool = False,
    ragged: Literal["exact", "pad"] = "exact",
) -> ArrayInput:
    """An input_fn over the columns of a table in memory; see `numpy_input_fn` for order, epochs and positions.

    Columns are as in inputs of files: strings are bytes objects, real numbers float32, lists of one size [batch, size]
    and others [batch, longest]. Missing numbers become NaN, and whole numbers beside them become real. Missing strings
    are empty. Dates and times stay as they are (host features).

    Args:
        table: an object with an Arrow stream: a polars or pandas DataFrame, a pyarrow Table or RecordBatchReader, a
            DuckDB relation; a Hugging Face dataset.
        batch_size: rows a batch, in each process.
        shuffle: True for training, False for evaluation and prediction.
        label_name: the column that is the label; None: there is none.
        select_columns: the columns to read, including the label; None: all.
        num_epochs: passes over the table; None repeats for ever.
        seed: the seed of the permutations; None: `tf_random_seed` of the RunConfig, or 0 if that is not set.
        drop_remainder: leaves out a short last batch.
        ragged: "exact" or "pad".

    Raises:
        ArgumentError: no such column, a column twice, no rows, or a column that holds neither numbers nor strings nor
            lists of them.
        ArgumentTypeError: the table exports no Arrow stream.

    Example:
        >>> import pyarrow as pa
        >>> people = pa.table({"age": [31, None], "name": ["ann", "bob"], "ill": [True, False]})
        >>> input_fn = table_input_fn(people, 2, shuffle=False, label_name="ill")
        >>> [(features["age"].tolist(), features["name"].tolist(), labels.tolist()) for features, labels in input_fn()]
        [([31.0, nan], [b'ann', b'bob'], [True, False])]
    """
    found = _table(table)
    names = [str(name) for name in found.column_names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(f"The table has columns of one name: {twice}. Rename them.")
    wanted = names if select_columns is None else list(select_columns)
    check_names("select_columns", wanted, names)
    if label_name is not None:
        check_names("label_name", [label_name], wanted)
    columns: dict[str, np.ndarray] = {name: _values(name, found.column(name)) for name in wanted}
    labels = None if label_name is None else columns.pop(label_name)
    if not columns:
        raise ArgumentError(f"There is no column beside the label {label_name!r}: an input needs a feature.")
    return numpy_input_fn(
        columns,
        labels,
        batch_size,
        num_epochs,
        shuffle,
        seed=seed,
        drop_remainder=drop_remainder,
        ragged=ragged,
    )


def _table(table: Any) -> Any:
    import pyarrow as pa

    if hasattr(table, "with_format") and hasattr(table, "iter"):  # a dataset of Hugging Face
        table = table.with_format("arrow")[:]
    if not hasattr(table, "__arrow_c_stream__"):
        hint = "For a dict of arrays: numpy_input_fn." if isinstance(table, Mapping) else "For files: csv_input_fn."
        raise ArgumentTypeError(
            f"The table must export an Arrow stream, as those of polars, pandas and pyarrow do; got "
            f"{type(table).__name__}. {hint}"
        )
    return pa.table(table)


def _values(name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    array = plain_array(column)
    arrow = array.type
    if pa.types.is_temporal(arrow):
        return array.to_numpy(zero_copy_only=False)
    kind = inferred(arrow)
    if kind.dtype == STRING and not _are_words(arrow):
        raise ArgumentError(f"Column {name!r} holds {arrow}: leave it out with select_columns, or make columns of it.")
    if kind.dtype.kind in "iub" and _has_nulls(array):
        kind = replace(kind, dtype=np.dtype(np.float32))
        if not kind.listed:
            array = array.cast(pa.float64())
    if kind.dtype.kind == "f":
        kind = replace(kind, default=kind.dtype.type(np.nan))
    values, _ = to_column(array, kind)
    dense = values.dense() if isinstance(values, Ragged) else values
    return np.array(dense)  # a copy, so later changes of the table do not reach the input


def _has_nulls(array: Any) -> bool:
    import pyarrow as pa

    return bool(array.flatten().null_count if pa.types.is_nested(array.type) else array.null_count)


def _are_words(arrow: Any) -> bool:
    import pyarrow as pa

    item = arrow.value_type if hasattr(arrow, "value_type") else arrow
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_one(item) for is_one in kinds)
