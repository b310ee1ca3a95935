"""Batches for the loops of `inputs.py`, read without a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Batches = Iterator[tuple[np.ndarray, np.ndarray]]


def slices(x: np.ndarray, y: np.ndarray, batch: int) -> Batches:
    """Yields batches of arrays."""
    for start in range(0, len(x), batch):
        yield x[start : start + batch], y[start : start + batch]


def blocks(path: Path, columns: Sequence[str], batch: int) -> Batches:
    """Yields batches of a CSV or Parquet file. pyarrow reads blocks ahead in a thread."""
    left_x, left_y = np.empty((0, len(columns)), np.float32), np.empty(0, np.int32)
    for block in _arrow(path, columns):
        x = np.concatenate([left_x, np.stack([block.column(name).to_numpy() for name in columns], axis=1)])
        y = np.concatenate([left_y, block.column("label").to_numpy()])
        whole = len(x) // batch * batch
        yield from slices(x[:whole], y[:whole], batch)
        left_x, left_y = x[whole:], y[whole:]
    if len(left_x):
        yield left_x, left_y


def _arrow(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    from pyarrow import csv, parquet

    if path.suffix == ".parquet":
        return parquet.ParquetFile(path).iter_batches(batch_size=16_384)
    types = dict.fromkeys(columns, "float32") | {"label": "int32"}
    return iter(csv.open_csv(path, convert_options=csv.ConvertOptions(column_types=types)))


def parsed(path: Path, batch: int) -> Batches:
    """Yields batches of a TFRecord file. protobuf parses one tf.Example after the other, without checksums."""
    from estimator_core.export import example_class

    example = example_class()
    content, place = path.read_bytes(), 0
    rows: list[Any] = []
    while place < len(content):
        size = int.from_bytes(content[place : place + 8], "little")
        rows.append(example.FromString(content[place + 12 : place + 12 + size]).features.feature)
        place += size + 16
        if len(rows) == batch:
            x = np.array([row["x"].float_list.value for row in rows], np.float32)
            yield x, np.array([row["label"].int64_list.value[0] for row in rows], np.int32)
            rows = []


def checked(source: Callable[[], Batches], *, copied: bool) -> Callable[[], Batches]:
    """Returns the same batches. Each is compared with the first.

    Args:
        source: the function that starts the batches.
        copied: whether to copy them, because the source may write into its arrays again.
    """

    def batches() -> Batches:
        first: tuple[Any, ...] | None = None
        for element in source():
            x, y = element
            found = type(x), x.dtype, x.shape[1:], type(y), y.dtype, y.shape[1:]
            if first is None:
                first = found
            if found != first or len(x) != len(y) or len(element) != 2:
                raise ValueError(f"A batch is {found}, but the first one is {first}.")
            yield (x.copy(), y.copy()) if copied else (x, y)

    return batches
