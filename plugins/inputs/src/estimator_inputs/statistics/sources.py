"""The rows of any kind of source: files, data frames, arrays, or an input_fn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_core.inputs import open_input
from estimator_inputs.statistics.files import rows_of_files
from estimator_inputs.statistics.rows import PIECE, Rows, cells_in, rows_of_columns, rows_of_tables
from estimator_inputs.table.hugging_face import in_arrow, is_dataset


def rows_of_source(source: Any, limit: int | None) -> Iterator[Rows]:
    """Yields the rows of a source, batch by batch. Tables and files yield at most `limit` rows.

    Raises:
        ArgumentError, ArgumentTypeError: the source cannot be read, or is endless and there is no limit.
    """
    if isinstance(source, (str, Path)) or _are_paths(source):
        return rows_of_files(source, limit)
    if isinstance(source, Mapping):
        return _of_arrays(cast(Mapping[str, Any], source), limit)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _of_pandas(source, limit)
    if is_dataset(source):
        return rows_of_tables(in_arrow(source).iter(PIECE if limit is None else min(limit, PIECE)))
    if hasattr(source, "__arrow_c_stream__"):  # polars, pyarrow, DuckDB
        return _of_arrow(source, limit)
    if callable(source) or hasattr(source, "__iter__"):
        return _of_input_fn(source if callable(source) else lambda: source, limit)
    raise ArgumentTypeError(
        f"A source must be files, a DataFrame, an Arrow table, a dict of arrays or an input_fn, given: {source!r:.200}."
    )


def _are_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(one, (str, Path)) for one in source)


def _of_arrays(columns: Mapping[str, Any], limit: int | None) -> Iterator[Rows]:
    arrays = {str(name): np.asarray(column) for name, column in columns.items()}
    sizes = {name: array.shape[0] if array.ndim else -1 for name, array in arrays.items()}
    if len(set(sizes.values())) != 1 or -1 in sizes.values():
        raise ArgumentError(f"The columns of a dict must be arrays with the same number of rows, given: {sizes}.")
    total = min(next(iter(sizes.values())), _most(limit))
    for first in range(0, total, PIECE):
        last = min(first + PIECE, total)
        yield rows_of_columns({name: array[first:last] for name, array in arrays.items()}, last - first, first)


def _of_pandas(frame: Any, limit: int | None) -> Iterator[Rows]:
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(f"The DataFrame has several columns with the same name: {twice}. Rename them.")
    for first in range(0, min(len(frame), _most(limit)), PIECE):
        piece = frame.iloc[first : min(first + PIECE, _most(limit))]
        columns: dict[str, Any] = {}
        for place, name in enumerate(names):
            series = piece.iloc[:, place]
            try:
                columns[name] = pa.Array.from_pandas(series.sparse.to_dense() if hasattr(series, "sparse") else series)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise InputError(
                    f"Column {name!r} holds values of several types: {error}. Convert them to one type."
                ) from error
        yield rows_of_columns(columns, len(piece), first)


def _of_arrow(source: Any, limit: int | None) -> Iterator[Rows]:
    import pyarrow as pa

    def tables() -> Iterator[Any]:
        seen = 0
        for batch in pa.RecordBatchReader.from_stream(source):
            for first in range(0, batch.num_rows, PIECE):
                piece = batch.slice(first, min(PIECE, _most(limit) - seen))
                seen += piece.num_rows
                yield piece
                if seen >= _most(limit):
                    return

    return rows_of_tables(tables())


def _of_input_fn(input_fn: Callable[..., Any], limit: int | None) -> Iterator[Rows]:
    source = open_input(input_fn, mode="train")
    try:
        seen = 0
        for batch in source:
            if source.endless and limit is None:
                raise ArgumentError(
                    "The input never ends (num_epochs=None): give limit, the number of rows to read, or num_epochs=1."
                )
            named = {**_named("", batch.features), **batch.host}
            if batch.labels is not None:
                named.update(_named("labels", batch.labels))
            if batch.weights is not None:
                kept = np.flatnonzero(batch.weights)
                named = {name: array[kept] for name, array in named.items()}
            yield Rows({name: cells_in(name, array) for name, array in named.items()}, batch.size, _place(seen))
            seen += batch.size
    finally:
        source.close()


def _named(name: str, tree: Any) -> dict[str, np.ndarray]:
    """Returns the arrays of a tree by path. A single array is named "x" in features and "labels" in labels."""
    if isinstance(tree, Mapping):
        items: Sequence[tuple[Any, Any]] = list(cast(Mapping[Any, Any], tree).items())
    elif isinstance(tree, (tuple, list)):
        items = list(enumerate(cast(Sequence[Any], tree)))
    else:
        return {name or "x": np.asarray(tree)}
    found: dict[str, np.ndarray] = {}
    for key, item in items:
        found.update(_named(f"{name}/{key}" if name else str(key), item))
    return found


def _place(first: int) -> Callable[[int], str]:
    return lambda row: f"example {first + row}"


def _most(limit: int | None) -> int:
    """Returns the limit, or a number above any number of rows."""
    return limit if limit is not None else 1 << 62
