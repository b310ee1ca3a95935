"""Boxes: parts of arrays, as (start, stop) along each axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

#: (start, stop) along each axis.
Box: TypeAlias = tuple[tuple[int, int], ...]
#: The largest number of bytes per checksum. Only a single element may be larger.
CHUNK_BYTES = 8 << 20


def shape_of(box: Box) -> tuple[int, ...]:
    """Returns the number of elements of a box along each axis."""
    return tuple(stop - start for start, stop in box)


def whole(shape: Sequence[int]) -> Box:
    """Returns the box of a whole array."""
    return tuple((0, size) for size in shape)


def common(a: Box, b: Box) -> Box | None:
    """Returns the part that two boxes of one array share.

    Example:
        >>> common(((0, 4), (2, 6)), ((3, 9), (0, 3)))
        ((3, 4), (2, 3))
        >>> common(((0, 4),), ((4, 5),)) is None
        True
    """
    shared = tuple((max(x, y), min(v, w)) for (x, v), (y, w) in zip(a, b, strict=True))
    return shared if all(start < stop for start, stop in shared) else None


def slices(box: Box, of: Box) -> tuple[slice, ...]:
    """Returns the slices of a box in the array of the box `of`."""
    return tuple(slice(start - first, stop - first) for (start, stop), (first, _) in zip(box, of, strict=True))


def chunks(shape: Sequence[int], itemsize: int) -> Iterator[Box]:
    """Yields the boxes of an array that each have a checksum, in the order of its bytes.

    Each is contiguous in C order: some rows, or parts of rows that are too large.

    Example:
        >>> list(chunks((5, 1 << 20), 4))
        [((0, 2), (0, 1048576)), ((2, 4), (0, 1048576)), ((4, 5), (0, 1048576))]
    """
    if math.prod(shape) * itemsize <= CHUNK_BYTES or not shape:
        yield whole(shape)
        return
    rows, rest = shape[0], shape[1:]
    together = CHUNK_BYTES // (math.prod(rest) * itemsize)
    if together:
        for start in range(0, rows, together):
            yield ((start, min(start + together, rows)), *whole(rest))
        return
    for row in range(rows):
        for inner in chunks(rest, itemsize):
            yield ((row, row + 1), *inner)


def tile(shape: Sequence[int], boxes: Sequence[Box]) -> bool:
    """Returns whether boxes cover an array, each element once, in slabs: along every axis in turn they are adjacent.

    The shards of a mesh always satisfy this.

    Example:
        >>> tile((4, 2), [((0, 2), (0, 2)), ((2, 4), (0, 1)), ((2, 4), (1, 2))])
        True
        >>> tile((4,), [((0, 3),), ((2, 4),)])
        False
    """
    if not shape:
        return len(boxes) == 1
    slabs: dict[tuple[int, int], list[Box]] = {}
    for box in boxes:
        slabs.setdefault(box[0], []).append(box[1:])
    at = 0
    for start, stop in sorted(slabs):
        if start != at or stop <= start:
            return False
        at = stop
    return at == shape[0] and all(tile(shape[1:], inner) for inner in slabs.values())
