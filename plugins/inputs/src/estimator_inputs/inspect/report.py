"""Looking into files of examples: schema, statistics, a few rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_inputs.inspect.detect import kind_of
from estimator_inputs.inspect.examples import guessed_features
from estimator_inputs.inspect.statistics import ColumnStatistics
from estimator_inputs.reading.files import FilePattern, find_files, opened
from estimator_inputs.reading.ragged import Column, Columns, Ragged, cut, rows_of
from estimator_inputs.table.types import STRING

_BATCH = 4096
#: Records whose features tell the specification.
_LOOKED_AT = 1000


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found.

    Attributes:
        kind: of the files, such as "csv".
        files: how many.
        bytes: of all files.
        rows: that were looked at.
        all_rows: whether those are all.
        bad_rows: among them.
        columns: name -> {"type", "shape" (of one row; "*" where rows differ), and what `ColumnStatistics` tells}.
        first: the first rows: name -> values.
    """

    kind: str
    files: int
    bytes: int
    rows: int
    all_rows: bool
    bad_rows: int
    columns: Mapping[str, Mapping[str, Any]]
    first: Mapping[str, list[Any]]


def inspect_files(file_pattern: FilePattern, *, kind: str | None = None, limit: int = 100_000, rows: int = 5) -> Report:
    """Reads the first `limit` rows of some files.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        kind: "csv", "jsonl", "parquet", "tfrecord" or "array_record"; None: told from the first file.
        limit: rows to look at.
        rows: of the report.

    Raises:
        ArgumentError: no such file, or an unknown kind.
        InputError: a file that cannot be read as that kind.
    """
    files = find_files(file_pattern)
    kind = kind or kind_of(files[0])
    iterator = _input(kind, files)()
    statistics: dict[str, ColumnStatistics] = {}
    forms: dict[str, tuple[str, list[Any]]] = {}
    first: dict[str, list[Any]] = {}
    read, ended, whole = 0, False, True
    while read < limit and not ended:
        batch: Columns | None = iterator.next_columns()
        if batch is None:
            ended = True
            continue
        whole = rows_of(batch) <= limit - read
        batch = cut(batch, 0, limit - read)
        for name, column in batch.items():
            values = column.values if isinstance(column, Ragged) else column
            text = values.dtype == STRING
            statistics.setdefault(name, ColumnStatistics(text=text)).add(values)
            shape = list(values.shape[1:])
            forms[name] = ("string" if text else values.dtype.name, ["*", *shape] if values is not column else shape)
            known = first.setdefault(name, [])
            known.extend(_rows(column, rows - len(known)))
        read += rows_of(batch)
    return Report(
        kind=kind,
        files=len(files),
        bytes=sum(path.stat().st_size for path in files),
        rows=read,
        all_rows=ended or (whole and iterator.next_columns() is None),
        bad_rows=iterator.bad_rows,
        columns={
            name: {"type": forms[name][0], "shape": forms[name][1], **found.result()}
            for name, found in statistics.items()
        },
        first={name: [_plain(value) for value in values] for name, values in first.items()},
    )


def _input(kind: str, files: tuple[Path, ...]) -> Any:
    """An input of all columns, in order, that leaves out bad rows."""
    import estimator_inputs as inputs

    if kind == "csv":
        delimiter = "\t" if ".tsv" in files[0].suffixes else ","
        return inputs.csv_input_fn(files, _BATCH, shuffle=False, on_error="skip", field_delim=delimiter)
    if kind == "jsonl":
        return inputs.jsonl_input_fn(files, _BATCH, shuffle=False, on_error="skip")
    if kind == "parquet":
        return inputs.parquet_input_fn(files, _BATCH, shuffle=False, on_error="skip")
    if kind == "tfrecord":
        return inputs.tfrecord_input_fn(files, _BATCH, _tfrecord_features(files[0]), shuffle=False, on_error="skip")
    if kind == "array_record":
        from estimator_inputs.array_record import some_records

        features = guessed_features(some_records(files[0], _LOOKED_AT), str(files[0]))
        return inputs.array_record_input_fn(files, _BATCH, features, shuffle=False, on_error="skip")
    raise ArgumentError(f"kind must be csv, jsonl, parquet, tfrecord or array_record, given: {kind!r}.")


def _tfrecord_features(path: Path) -> dict[str, Any]:
    from estimator_inputs.tfrecord.framing import read_frames

    with opened(path, "auto") as stream:
        records = (
            frames.data[begin : begin + size]
            for frames in read_frames(stream, block_bytes=1 << 18)
            for begin, size in zip(frames.begins.tolist(), frames.sizes.tolist(), strict=True)
        )
        return guessed_features(itertools.islice(records, _LOOKED_AT), str(path))


def _rows(column: Column, most: int) -> list[Any]:
    if not isinstance(column, Ragged):
        return list(column[: max(most, 0)])
    ends = np.cumsum(column.lengths)[: max(most, 0)].tolist()
    return [column.values[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
