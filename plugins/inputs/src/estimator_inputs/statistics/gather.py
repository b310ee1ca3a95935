"""Statistics of a table in one pass. The memory does not grow with the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from estimator_inputs.statistics.cells import Cells
from estimator_inputs.statistics.column import ColumnGatherer
from estimator_inputs.statistics.record import Statistics
from estimator_inputs.statistics.rows import Rows
from estimator_inputs.statistics.sources import rows_of_source

#: The largest number of bad rows that are reported one by one.
_TOLD = 5

#: Receives the name of a column, its cells for a batch of rows, and a function that names the place of a row.
Observer = Callable[[str, Cells, Callable[[int], str]], None]


def gather(source: Any, *, limit: int | None = None, observe: Observer | None = None) -> Statistics:
    """Returns the statistics of a source, which is read once.

    Args:
        source: the rows. See `learn_schema`.
        limit: the number of rows to read. None: all rows.
        observe: called for every column of every batch of rows.

    Raises:
        ArgumentError, ArgumentTypeError: the source cannot be read, or is endless and there is no limit.
        InputError: a file cannot be read, or the type of a column changes.

    Example:
        >>> found = gather({"age": [31.0, float("nan")], "name": ["ann", "bob"]})
        >>> found.rows, found.columns["age"].missing, found.columns["name"].different
        (2, 1, 2)
    """
    return gathered(rows_of_source(source, limit), limit=limit, observe=observe)


def gathered(batches: Iterable[Rows], *, limit: int | None = None, observe: Observer | None = None) -> Statistics:
    """Returns the statistics of batches of rows. See `gather`."""
    columns: dict[str, ColumnGatherer] = {}
    rows = bad_rows = 0
    bad: list[str] = []
    ended = True
    for batch in batches:
        if limit is not None and rows >= limit and batch.rows:
            ended = False
            break
        bad_rows += len(batch.bad)
        bad.extend(str(one) for one in batch.bad[: _TOLD - len(bad)])
        if not batch.rows:
            continue
        for name, cells in batch.columns.items():
            columns.setdefault(name, ColumnGatherer(name)).add(cells, rows=batch.rows)
            if observe is not None:
                observe(name, cells, batch.where)
        rows += batch.rows
    return Statistics(
        rows=rows,
        all_rows=ended,
        bad_rows=bad_rows,
        bad=tuple(bad),
        columns={name: gatherer.result() for name, gatherer in columns.items()},
    )
