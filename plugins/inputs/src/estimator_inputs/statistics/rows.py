"""Batches of rows of a source, by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from estimator_core.errors import InputError
from estimator_inputs.statistics.cells import Cells, cells_of

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
        columns = {name: table.column(place) for place, name in enumerate(table.schema.names)}
        yield rows_of_columns(columns, table.num_rows, first)
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
    return Rows(
        {name: cells_in(name, column) for name, column in columns.items()}, rows, lambda row: f"row {first + row}"
    )


def cells_in(name: str, column: Any) -> Cells:
    """Returns the same as `cells_of`. Its errors name the column."""
    import pyarrow as pa

    try:
        return cells_of(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"Column {name!r} holds values of several types: {error}. Convert them to one type."
        ) from error
