"""Windows of rows. The rows of a window are shuffled together, and a position can return to the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from estimator_inputs.reading.interleave import InterleavedBlocks, Placed
from estimator_inputs.reading.ragged import Columns, cut, join, rows_of, take


class Window(NamedTuple):
    """Rows in the order in which they are returned.

    Attributes:
        columns: the columns of the rows.
        rows: the number of rows.
        place: the place where the window begins, as JSON values.
    """

    columns: Columns
    rows: int
    place: dict[str, Any]


def plain_windows(blocks: InterleavedBlocks, mine: Callable[[Placed], Columns | None]) -> Iterator[Window]:
    """Yields every block as a window."""
    for placed in blocks:
        columns = mine(placed)
        if columns is not None:
            yield Window(columns, rows_of(columns), {"blocks": placed.place, "skip": 0, "window": 0})


def shuffled_windows(
    blocks: InterleavedBlocks,
    mine: Callable[[Placed], Columns | None],
    *,
    size: int,
    seed: tuple[int, int],
    skip: int = 0,
    window: int = 0,
) -> Iterator[Window]:
    """Yields windows of `size` rows, each in an order that depends only on (seed, epoch, number of the window).

    Unlike a buffer that is refilled row by row, a position in a window requires reading only the rows of this window
    again.

    Args:
        blocks: the blocks of rows.
        mine: returns the rows of a block that belong to this process.
        size: the number of rows per window. The last window of an epoch may have fewer.
        seed: the seed and the epoch.
        skip: the number of rows of the first block that belong to an earlier window.
        window: the number of the first window.
    """
    pieces: list[Columns] = []
    gathered = 0
    place: dict[str, Any] | None = None
    for placed in blocks:
        columns = mine(placed)
        rows = 0 if columns is None else rows_of(columns)
        at, skip = skip, 0
        while columns is not None and at < rows:
            if place is None:
                place = {"blocks": placed.place, "skip": at, "window": window}
            taken = min(rows - at, size - gathered)
            pieces.append(cut(columns, at, at + taken))
            gathered += taken
            at += taken
            if gathered == size:
                yield _mixed(pieces, gathered, place, seed)
                pieces, gathered, place, window = [], 0, None, window + 1
    if gathered:
        assert place is not None
        yield _mixed(pieces, gathered, place, seed)


def rows_of_shard(columns: Columns, number: int, shard: tuple[int, int]) -> Columns:
    """Returns the rows of block `number` that belong to one process. Rows are dealt in turn, across blocks."""
    index, count = shard
    return cut(columns, (index - number) % count, rows_of(columns), count)


def numbers_of_part(rows: int, first: int, every: int, held_out: bool | tuple[int, ...]) -> np.ndarray:
    """Returns the indices in a block of the rows of a part: int64[found]. The row numbers in the file decide.

    Args:
        rows: the number of rows of the block.
        first: the number of the first row of the block in the file.
        every: the number of neighbouring rows of which the last is held out.
        held_out: the part: True for the last rows, False for all others, or the places of the rows.

    Example:
        >>> numbers_of_part(6, 2, 4, True), numbers_of_part(6, 2, 4, (0, 2))
        (array([1, 5]), array([0, 2, 4]))
    """
    places = (first + np.arange(rows)) % every
    if isinstance(held_out, tuple):
        return np.flatnonzero(np.isin(places, held_out))
    return np.flatnonzero((places == every - 1) == held_out)


def _mixed(pieces: list[Columns], rows: int, place: dict[str, Any], seed: tuple[int, int]) -> Window:
    numbers = np.random.SeedSequence((*seed, 1 + place["window"]))
    order = np.random.Generator(np.random.PCG64(numbers)).permutation(rows)
    return Window(take(join(pieces), order), rows, place)
