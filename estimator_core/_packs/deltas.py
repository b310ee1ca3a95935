"""Deltas: the rows of a piece that changed since a full save, as two additional arrays in a pack."""

from __future__ import annotations

import re

import numpy as np

from estimator_core._packs.boxes import Box, whole
from estimator_core._packs.write import HostPiece

#: Endings of the items that hold the numbers of rows and the rows.
ROWS, VALUES = ":rows", ":values"
_PLACE = re.compile(r"\d{1,18}-\d{1,18}(,\d{1,18}-\d{1,18})*")


def piece_name(path: str, place: Box) -> str:
    """The name of a piece of an array.

    Example:
        >>> piece_name("dense/kernel", ((0, 4), (8, 16)))
        'dense/kernel@0-4,8-16'
    """
    return f"{path}@{','.join(f'{start}-{stop}' for start, stop in place)}"


def parse_name(name: str) -> tuple[str, Box]:
    """The inverse of `piece_name`.

    Raises:
        ValueError: the text is not the name of a piece.

    Example:
        >>> parse_name("dense/kernel@0-4,8-16")
        ('dense/kernel', ((0, 4), (8, 16)))
    """
    path, _, place = name.rpartition("@")
    if not _PLACE.fullmatch(place):
        raise ValueError(f"{name[:200]!r} names no piece")
    bounds = (axis.partition("-") for axis in place.split(","))
    return path, tuple((int(start), int(stop)) for start, _, stop in bounds)


def delta_pieces(piece: HostPiece, rows: np.ndarray) -> list[HostPiece]:
    """What is written instead of a piece whose given rows have changed. Rows count from the first row of the piece."""
    name, first = piece_name(piece.path, piece.place), piece.place[0][0] if piece.place else 0
    if not rows.size:
        return []
    return [
        HostPiece(item=piece.item + ending, path=name, shape=array.shape, place=whole(array.shape), array=array)
        for ending, array in ((ROWS, rows.astype(np.int64) + first), (VALUES, piece.array[rows]))
    ]
