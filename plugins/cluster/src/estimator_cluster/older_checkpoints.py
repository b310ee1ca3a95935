"""Reads the arrays of checkpoints of format 2, which several processes wrote in pieces with tensorstore.

The core calls this module for such a checkpoint. They are no longer written.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

#: item -> name of a piece -> dtype.
Wanted = Mapping[str, Mapping[str, np.dtype]]
Arrays = dict[str, dict[str, np.ndarray]]


class _Piece(NamedTuple):
    process: int
    place: tuple[slice, ...]
    name: str
    bytes: int
    crc32: str


def read_pieces(
    directory: Path, wanted: Mapping[str, Collection[str]], read_arrays: Callable[[Path, Wanted], Arrays]
) -> Arrays:
    """Returns whole arrays, assembled from their pieces.

    Args:
        directory: the checkpoint. The core has verified its manifest.
        wanted: the paths of the arrays in pieces, by item.
        read_arrays: the core's function that reads what orbax wrote: the directory of process 0.

    Raises:
        ValueError: a piece differs from what its process saved, or the pieces do not cover an array exactly once.
    """
    arrays = json.loads((directory / "manifest.json").read_bytes())["arrays"]
    entries = {(item, path): arrays[item][path] for item, paths in wanted.items() for path in paths}
    pieces = {key: [_piece(key[1], *piece) for piece in entry["pieces"]] for key, entry in entries.items()}
    named: dict[int, dict[str, dict[str, np.dtype]]] = {}
    for (item, path), own in pieces.items():
        for piece in own:
            named.setdefault(piece.process, {}).setdefault(item, {})[piece.name] = _dtype(arrays[item][path]["dtype"])
    found: Arrays = {item: {} for item in wanted}
    for process, names in named.items():
        of_process = directory / (f"arrays-{process}" if process else "arrays")
        for item, read in (read_arrays if process == 0 else _read)(of_process, names).items():
            found[item].update(read)
    whole: Arrays = {item: {} for item in wanted}
    for (item, path), entry in entries.items():
        whole[item][path] = _assembled(f"{item} {path!r}", entry, pieces[item, path], found[item])
    return whole


def _piece(path: str, process: int, place: list[list[int]], size: int, crc32: str) -> _Piece:
    name = f"{path}@{','.join(f'{start}-{stop}' for start, stop in place)}"
    return _Piece(process, tuple(slice(*bounds) for bounds in place), name, size, crc32)


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def _read(directory: Path, wanted: Wanted) -> Arrays:
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


def _assembled(
    what: str, entry: Mapping[str, Any], pieces: Collection[_Piece], read: Mapping[str, np.ndarray]
) -> np.ndarray:
    whole = np.empty(entry["shape"], _dtype(entry["dtype"]))
    covered = 0
    for piece in pieces:
        array = read.get(piece.name)
        if array is None or array.nbytes != piece.bytes or _checksum(array) != piece.crc32:
            raise ValueError(f"{what}: the piece {piece.name!r} differs from what process {piece.process} saved")
        whole[piece.place] = array
        covered += array.size
    if covered != whole.size:
        raise ValueError(f"the pieces of {what} do not cover the array exactly once")
    return whole


def _checksum(array: np.ndarray) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data):08x}"
