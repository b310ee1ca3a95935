"""Some rows of a source, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from estimator_core.errors import InputError
from estimator_inputs.statistics.cells import Cells, cells_of

#: Rows of a table in memory that are processed together.
PIECE = 1 << 16


class Rows(NamedTuple):
    """Some rows of a source.

    Attributes:
        columns: their cells, by column.
        rows: how many rows.
        where: names the place of a row, by its number among these.
        bad: the bad rows: `str` shows place and fault.
    """

    columns: Mapping[str, Cells]
    rows: int
    where: Callable[[int], str]
    bad: Sequence[object] = ()


def rows_of_tables(tables: Iterable[Any]) -> Iterator[Rows]:
    """The rows of Arrow tables or record batches, numbered from 0."""
    first = 0
    for table in tables:
        columns = {name: table.column(place) for place, name in enumerate(table.schema.names)}
        yield rows_of_columns(columns, table.num_rows, first)
        first += table.num_rows


def rows_of_columns(columns: Mapping[str, Any], rows: int, first: int) -> Rows:
    """Rows of arrays by column.

    Args:
        columns: Arrow or numpy arrays of one length.
        rows: how many rows.
        first: the number of the first row.

    Raises:
        InputError: a column holds values of several types.
    """
    return Rows(
        {name: cells_in(name, column) for name, column in columns.items()}, rows, lambda row: f"row {first + row}"
    )


def cells_in(name: str, column: Any) -> Cells:
    """`cells_of` whose error names the column."""
    import pyarrow as pa

    try:
        return cells_of(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"Column {name!r} holds values of several types: {error}. Make them of one type.") from error
