"""`table_input_fn`: batches of a table in memory, of any library: polars, Arrow, DuckDB, or a database result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import ArrayInput, numpy_input_fn
from estimator_inputs.reading.ragged import Ragged
from estimator_inputs.table.arrays import plain_array, to_column
from estimator_inputs.table.hugging_face import in_arrow, is_dataset
from estimator_inputs.table.rounding import infinite_rows, rounded_rows
from estimator_inputs.table.types import STRING, ColumnType, check_names, inferred, is_period, is_word, item_type


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
    """Returns an input_fn over the columns of a table in memory. See `numpy_input_fn` for order, epochs and positions.

    Columns are converted as in file inputs. Strings become bytes objects, real numbers and decimals float32, lists of
    one size [batch, size] and other lists [batch, longest]. With `jax_enable_x64`, real numbers, decimals and integers
    in columns with missing values become float64, unless float32 represents all numbers of the column's type. Missing
    numbers, and missing lists of real numbers, become NaN. Integers in such columns become real numbers. Missing
    strings are empty. Dates and times do not change (host features), except that those with a zone become UTC. The
    index of a pandas DataFrame is not read.

    Args:
        table: an object with an Arrow stream, such as a polars or pandas DataFrame, a pyarrow Table or
            RecordBatchReader, or a DuckDB relation. Or a Hugging Face dataset.
        batch_size: rows per batch, in each process.
        shuffle: True for training, False for evaluation and prediction.
        label_name: the column that is the label. None: no label.
        select_columns: the columns to read, including the label; None: all.
        num_epochs: passes over the table; None repeats forever.
        seed: the seed of the permutations; None: `tf_random_seed` of the RunConfig, or 0 if it is not set.
        drop_remainder: whether to drop a short last batch.
        ragged: "exact" or "pad".

    Raises:
        ArgumentError: a column does not exist or occurs twice, there are no rows, or a column does not contain numbers,
            strings or lists of them. float32 cannot represent an integer exactly, or a finite number would become
            infinite.
        ArgumentTypeError: the table does not export an Arrow stream.

    Example:
        >>> import pyarrow as pa
        >>> people = pa.table({"age": [31, None], "name": ["ann", "bob"], "ill": [True, False]})
        >>> input_fn = table_input_fn(people, 2, shuffle=False, label_name="ill")
        >>> [(features["age"].tolist(), features["name"].tolist(), labels.tolist()) for features, labels in input_fn()]
        [([31.0, nan], [b'ann', b'bob'], [True, False])]
    """
    found = _table(table)
    names = _check_once(found.column_names)
    if not found.num_rows:
        raise ArgumentError("The table has no rows. A reader or another stream can be read only once.")
    wanted = names if select_columns is None else list(select_columns)
    check_names("select_columns", wanted, names)
    if label_name is not None:
        check_names("label_name", [label_name], wanted)
    for name in wanted:
        if is_period(found.schema.field(name)):
            raise ArgumentError(f"Column {name!r} holds periods: convert it to times (dt.to_timestamp()), or drop it.")
    columns: dict[str, np.ndarray] = {name: _values(name, found.column(name)) for name in wanted}
    labels = None if label_name is None else columns.pop(label_name)
    if not columns:
        other = "" if label_name is None else f" except the label {label_name!r}"
        raise ArgumentError(f"There is no column{other}: an input needs a feature.")
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

    given = table
    if is_dataset(table) and hasattr(table, "__len__"):
        table = in_arrow(table)[:]
    if not hasattr(table, "__arrow_c_stream__"):
        raise ArgumentTypeError(
            f"The table must export an Arrow stream, as those of polars, pandas and pyarrow do; got "
            f"{type(given).__name__}. {_hint(given)}"
        )
    try:
        return _converted(table)
    except (pa.ArrowException, TypeError) as error:
        column = _unreadable(table)
        raise ArgumentError(
            f"{'The table' if column is None else f'Column {column!r}'} cannot be converted to Arrow: "
            f"{str(error).rstrip('.')}. Cast it, or drop it from the table."
        ) from error


def _hint(given: Any) -> str:
    if isinstance(given, Mapping):
        several = hasattr(given, "with_format")  # the splits of a dataset of Hugging Face
        return "Choose a split: dataset['train']." if several else "For a dict of arrays: numpy_input_fn."
    if is_dataset(given):
        return "Pass its batches as an input_fn: lambda: dataset.with_format('numpy').iter(batch_size)."
    if hasattr(given, "collect"):
        return "Collect it first: frame.collect()."
    return "For files: csv_input_fn."


def _converted(table: Any) -> Any:
    import pyarrow as pa

    if hasattr(table, "iloc") and hasattr(table, "columns"):  # the index of a pandas DataFrame is not a column
        _check_once(str(name) for name in table.columns)
        return pa.Table.from_pandas(table, preserve_index=False)
    return pa.table(table)


def _check_once(names: Iterable[str]) -> list[str]:
    listed = list(names)
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise ArgumentError(f"The table has several columns with the same name: {twice}. Rename them.")
    return listed


def _unreadable(table: Any) -> str | None:
    """Returns the first column of a DataFrame that Arrow cannot read."""
    import pyarrow as pa

    for name in getattr(table, "columns", ()):
        try:
            _converted(table[[name]])
        except (pa.ArrowException, TypeError):
            return str(name)
    return None


def _values(name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    array = plain_array(column)
    arrow = array.type
    if pa.types.is_temporal(arrow):
        return array.to_numpy(zero_copy_only=False)
    kind = inferred(arrow)
    if not _is_plain(arrow):
        raise ArgumentError(
            f"Column {name!r} holds {arrow}: leave it out with select_columns, or split it into columns."
        )
    padding, lacking = -1 if kind.dtype.kind in "iu" else 0, _has_nulls(array)
    if kind.dtype.kind in "iub" and lacking:
        kind = replace(kind, dtype=_real(arrow), exact=True)
    elif kind.dtype.kind == "f":
        kind = replace(kind, dtype=_real(arrow))
    if kind.exact:
        _check_exact(name, array, kind, "it has missing values (NaN)" if lacking else f"it holds {arrow}")
    if kind.dtype.kind == "f":
        kind = replace(kind, default=kind.dtype.type(np.nan))
    try:
        values, _ = to_column(array, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ArgumentError(f"Column {name!r} holds {arrow} and cannot be read as {kind.name}: {error}.") from error
    infinite = next(infinite_rows(array, values), None)
    if infinite is not None:
        row, number = infinite
        raise ArgumentError(
            f"Column {name!r} becomes {kind.dtype}, in which {number} of row {row} is infinite. Correct it, or "
            "scale the column."
        )
    if isinstance(values, Ragged):
        dense = replace(values, fill=padding if kind.dtype.kind == "f" else values.fill).dense()
        if kind.dtype.kind == "f" and array.null_count:
            dense[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return dense
    tensor = _tensors(column.type, values)
    return np.array(tensor)  # a copy, so that later changes of the table do not affect the input


def _real(arrow: Any) -> np.dtype[Any]:
    """Returns the dtype of real numbers from a column: as wide as the column needs and as devices support."""
    import jax
    import pyarrow as pa

    while pa.types.is_nested(arrow):
        arrow = arrow.value_type
    held = 32 if pa.types.is_floating(arrow) else 16  # the width in bits up to which float32 represents all numbers
    wide = cast(Any, jax.config).jax_enable_x64 and arrow.bit_width > held
    return np.dtype(np.float64 if wide else np.float32)


def _check_exact(name: str, array: Any, kind: ColumnType, why: str) -> None:
    found = next(rounded_rows(array, kind.dtype), None)
    if found is not None:
        row, number = found
        raise ArgumentError(
            f"Column {name!r} becomes {kind.dtype} ({why}), which cannot represent {number} of row {row} exactly: "
            "different numbers would become equal. Fill missing values and cast it to an integer, or cast it to "
            "strings and hash these. Cast it to a float to round it."
        )


def _tensors(arrow: Any, values: np.ndarray) -> np.ndarray:
    """Returns the rows of a column of tensors in their shape. Arrow stores them as lists of one size."""
    import pyarrow as pa

    if not isinstance(arrow, pa.FixedShapeTensorType):
        return values
    found = values.reshape(len(values), *arrow.shape)
    return found if arrow.permutation is None else found.transpose(0, *(axis + 1 for axis in arrow.permutation))


def _has_nulls(array: Any) -> bool:
    """Returns whether numbers are missing. A missing list is an empty list, except among lists of one size."""
    import pyarrow as pa

    if not pa.types.is_nested(array.type):
        return bool(array.null_count)
    return bool(pa.types.is_fixed_size_list(array.type) and array.null_count) or _has_nulls(array.flatten())


def _is_plain(arrow: Any) -> bool:
    """Returns whether a type is numbers, words, lists of these, or lists of one size, which may be nested."""
    import pyarrow as pa

    item = item_type(arrow)
    return not pa.types.is_nested(item) and (is_word(item) or inferred(item).dtype != STRING)
