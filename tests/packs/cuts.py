"""Packs of random arrays that are cut into pieces and distributed over several writers."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from estimator_core._packs.boxes import shape_of
from estimator_core._packs.dtypes import dtype_named
from estimator_core._packs.entry import pack_name
from estimator_core._packs.fetch import StoredArray
from estimator_core._packs.packs import Packs
from estimator_core._packs.stored import stored_arrays
from estimator_core._packs.write import HostPiece, write_pack
from estimator_core._storage.local import LocalStorage

DTYPES = ("float32", "bool", "bfloat16", "int4", "uint32", "float8_e4m3fn", "int64", "complex64", "float16", "uint8")
SMALL_CHUNK = 48


def make_chunks_small(patch: pytest.MonkeyPatch) -> None:
    """Makes chunks of a few elements, so that small arrays have many."""
    patch.setattr("estimator_core._packs.boxes.CHUNK_BYTES", SMALL_CHUNK)
    patch.setattr("estimator_core._packs.fetch.CHUNK_BYTES", 2 * SMALL_CHUNK)
    patch.setattr("estimator_core._packs.fetch._GAP", 64)


@dataclass(frozen=True)
class Cut:
    """An array and the boxes it is cut into, each for one writer."""

    array: np.ndarray
    boxes: tuple[tuple[tuple[tuple[int, int], ...], int], ...]


def bits(dtype: str, shape: Sequence[int], seed: int) -> np.ndarray:
    """Draws any bit pattern of the dtype, NaN included."""
    of = dtype_named(dtype)
    rng = np.random.default_rng(seed)
    if of.itemsize == 1 and dtype != "float8_e4m3fn" and dtype != "uint8":
        return rng.integers(0, 2, shape).astype(of)
    raw = rng.integers(0, 256, math.prod(shape) * of.itemsize, np.uint8)
    return raw.view(of).reshape(shape)


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    """Draws an array of any dtype, cut along each axis and distributed over up to three writers."""
    shape = draw(st.lists(st.integers(0, 9), max_size=4).map(tuple))
    array = bits(draw(st.sampled_from(DTYPES)), shape, draw(st.integers(0, 2**32)))
    boxes = [()]
    for size in shape:
        inner = draw(st.sets(st.integers(1, size - 1), max_size=3)) if size > 1 else set()
        edges = [0, *sorted(inner), size]
        boxes = [(*box, (a, b)) for box in boxes for a, b in itertools.pairwise(edges)]
    return Cut(array, tuple((box, draw(st.integers(0, 2))) for box in boxes if math.prod(shape_of(box))))


def written(directory: Path, named: dict[str, Cut]) -> Packs:
    """Writes the packs of these arrays, one per writer."""
    directory.mkdir()
    storage = LocalStorage(directory)
    entries = []
    for writer in range(3):
        own = [
            HostPiece(
                item="variables",
                path=path,
                shape=cut.array.shape,
                place=box,
                array=cut.array[tuple(slice(*bounds) for bounds in box)],
            )
            for path, cut in named.items()
            for box, of in cut.boxes
            if of == writer
        ]
        entries.append(write_pack(storage, pack_name(writer), own)[0])
    return Packs(storage=storage, prefix="", where="here", entries=tuple(entries))


def opened(packs: Packs, named: dict[str, Cut]) -> dict[str, StoredArray]:
    """Opens the arrays in packs."""
    expected = {path: (cut.array.shape, cut.array.dtype.name) for path, cut in named.items()}
    return stored_arrays(packs, {"variables": expected})["variables"]
