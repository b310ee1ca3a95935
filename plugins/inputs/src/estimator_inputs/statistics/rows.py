"""Batches of rows of a source, by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from estimator_core.errors import InputError
from estimator_inputs.statistics.cells import Cells, cells_of, other_cells
from estimator_inputs.table.types import is_period

#: The number of rows of a table in memory that are processed together.
PIECE = 1 << 16


class Rows(NamedTuple):
    """A batch of rows of a source.

    Attributes:
        columns: the cells of the rows, by column.
        rows: the number of rows.
        where: returns the place of a row from its index in the batch.
        bad: the bad rows. `str` shows place and fault.
    """

    columns: Mapping[str, Cells]
    rows: int
    where: Callable[[int], str]
    bad: Sequence[object] = ()


def rows_of_tables(tables: Iterable[Any]) -> Iterator[Rows]:
    """Yields the rows of Arrow tables or record batches, numbered from 0."""
    first = 0
    for table in tables:
        cells = {field.name: cells_in(field.name, table.column(n), field) for n, field in enumerate(table.schema)}
        yield Rows(cells, table.num_rows, _numbered(first))
        first += table.num_rows


def rows_of_columns(columns: Mapping[str, Any], rows: int, first: int) -> Rows:
    """Returns rows from arrays by column.

    Args:
        columns: the Arrow or numpy arrays, which have the same length.
        rows: the number of rows.
        first: the number of the first row.

    Raises:
        InputError: a column has values of several types.
    """
    return Rows({name: cells_in(name, column) for name, column in columns.items()}, rows, _numbered(first))


def cells_in(name: str, column: Any, field: Any = None) -> Cells:
    """Returns the same as `cells_of`, but periods of pandas are not read as numbers. Its errors name the column.

    Args:
        name: the name of the column.
        column: see `cells_of`.
        field: the Arrow field of the column. None: the type of the column alone shows what it holds.
    """
    import pyarrow as pa

    if isinstance(column, (pa.Array, pa.ChunkedArray)) and is_period(field or pa.field(name, column.type)):
        return other_cells(column, "period")
    try:
        return cells_of(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"Column {name!r} holds values of several types: {error}. Convert them to one type."
        ) from error


def _numbered(first: int) -> Callable[[int], str]:
    return lambda row: f"row {first + row}"
