"""Pieces of arrays, to and from a directory that one of several processes writes by itself.

Orbax refuses arrays that belong to one process of several, and compares paths with the other processes on their
devices; what it writes with, tensorstore, does neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_pieces(directory: Path, items: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Writes arrays into a new directory; returns when they are on the disk."""
    import tensorstore as ts

    directory.mkdir()
    transaction = ts.Transaction()
    context = ts.Context()  # shared: stores that open the database apart race for its manifest, file after file
    writes: list[Any] = []
    for item, named in items.items():
        for name, array in named.items():
            spec = {**_spec(directory, item, name), "metadata": {"shape": list(array.shape)}}
            store = ts.open(
                spec, create=True, dtype=ts.dtype(array.dtype), transaction=transaction, context=context
            ).result()
            writes.append(store.write(array))
    transaction.commit_async().result()
    for write in writes:
        write.result()


def read_pieces(directory: Path, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, np.ndarray]]:
    """Reads the named pieces of each item; what `wanted` maps them to does not matter."""
    import tensorstore as ts

    context = ts.Context()
    opened = {
        item: {name: ts.open(_spec(directory, item, name), open=True, read=True, context=context) for name in named}
        for item, named in wanted.items()
    }
    reads = {item: {name: store.result().read() for name, store in named.items()} for item, named in opened.items()}
    return {item: {name: np.asarray(read.result()) for name, read in named.items()} for item, named in reads.items()}


def _spec(directory: Path, item: str, name: str) -> dict[str, Any]:
    # Slashes would nest the arrays, and zarr reserves a name below each.
    path = f"{item}/{name.replace('/', '|')}"
    return {"driver": "zarr3", "kvstore": {"driver": "ocdbt", "base": f"file://{directory.absolute()}/", "path": path}}
