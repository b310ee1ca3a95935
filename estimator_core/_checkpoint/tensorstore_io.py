"""Reads arrays in pieces of format 2, which several processes wrote with tensorstore. They are no longer written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._checkpoint.manifest import ArrayEntry
from estimator_core._packs.write import piece_name


def read_pieces(directory: Path, wanted: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, np.ndarray]]:
    """Reads the named pieces of each item. The values of `wanted` do not matter."""
    import tensorstore as ts

    context = ts.Context()
    opened = {
        item: {name: ts.open(_spec(directory, item, name), open=True, read=True, context=context) for name in named}
        for item, named in wanted.items()
    }
    reads = {item: {name: store.result().read() for name, store in named.items()} for item, named in opened.items()}
    return {item: {name: np.asarray(read.result()) for name, read in named.items()} for item, named in reads.items()}


def assembled(entry: ArrayEntry, dtype: np.dtype, read: Mapping[str, np.ndarray], path: str) -> np.ndarray:
    """Assembles a whole array from its pieces."""
    whole = np.empty(entry.shape, dtype)
    for piece in entry.pieces:
        whole[tuple(slice(start, stop) for start, stop in piece.place)] = read[piece_name(path, piece.place)]
    return whole


def covered(entry: ArrayEntry) -> bool:
    """Returns whether the pieces have as many elements as the array."""
    sizes = (int(np.prod([stop - start for start, stop in piece.place], dtype=np.int64)) for piece in entry.pieces)
    return sum(sizes) == int(np.prod(entry.shape, dtype=np.int64))


def _spec(directory: Path, item: str, name: str) -> dict[str, Any]:
    # Slashes would nest the arrays, and zarr reserves a name below each.
    path = f"{item}/{name.replace('/', '|')}"
    return {"driver": "zarr3", "kvstore": {"driver": "ocdbt", "base": f"file://{directory.absolute()}/", "path": path}}
