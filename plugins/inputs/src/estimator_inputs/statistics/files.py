"""Reads the rows of files for statistics. Missing cells are kept, and bad rows are reported."""

from __future__ import annotations

import copy
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, InputError
from estimator_inputs.inspect.detect import kind_of
from estimator_inputs.inspect.examples import guessed_features
from estimator_inputs.reading.blocks import BadRow
from estimator_inputs.reading.files import FilePattern, find_files
from estimator_inputs.reading.ragged import Column, Ragged, rows_of
from estimator_inputs.reading.unchanged import pieces_of
from estimator_inputs.statistics.cells import Cells, ragged_cells
from estimator_inputs.statistics.rows import PIECE, Rows, cells_in
from estimator_inputs.table.blocks import Tables
from estimator_inputs.tfrecord.spec import feature_specs

_log = logging.getLogger("estimator_inputs")
#: The number of rows that determine types, and the number of records that determine the features.
_LOOKED_AT, _RECORDS = 10_000, 1000
#: The number of bytes of a file that are processed together.
_BLOCK = 1 << 22
KINDS = ("csv", "jsonl", "parquet", "tfrecord", "array_record")


@dataclass(frozen=True, kw_only=True)
class CsvForm:
    """The format of CSV files.

    Attributes:
        na_values: the texts that mean a missing value, in addition to the empty text.
        field_delim: the character between columns. None: a comma, or a tab in .tsv files.
    """

    na_values: tuple[str, ...] = ()
    field_delim: str | None = None


_USUAL = CsvForm()


def rows_of_files(
    file_pattern: FilePattern, limit: int | None, kind: str | None = None, form: CsvForm = _USUAL
) -> Iterator[Rows]:
    """Yields the rows of files of one kind.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        limit: the number of rows to read. None: all rows.
        kind: one of `KINDS`. None: the first file determines the kind.
        form: the format of CSV files.

    Raises:
        ArgumentError: a file does not exist, the kind is unknown, or `form` is set for files that are not CSV.
        InputError: a file cannot be read as that kind.
    """
    files = find_files(file_pattern)
    kind = kind or kind_of(files[0])
    if form != _USUAL and kind != "csv":
        told = "--na-values" if form.na_values else "--field-delim"
        raise ArgumentError(f"{told} is for CSV, but {files[0]} is {kind}.")
    if kind in ("csv", "jsonl"):
        batches = _of_text(kind, files, form)
    elif kind == "parquet":
        batches = _of_parquet(files)
    elif kind == "tfrecord":
        batches = _of_tfrecords(files)
    elif kind == "array_record":
        batches = _of_array_records(files)
    else:
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}, given: {kind!r}.")
    return _cut(batches, limit)


def _cut(batches: Iterator[Rows], limit: int | None) -> Iterator[Rows]:
    """Yields the batches up to the limit, and cuts the last one. One more batch follows if there are more rows."""
    left = limit
    for batch in batches:
        if left is None or batch.rows <= left:
            left = None if left is None else left - batch.rows
            yield batch
            continue
        if left:
            columns = {name: cells.first(left) for name, cells in batch.columns.items()}
            yield batch._replace(columns=columns, rows=left)
        yield batch
        return


def _of_text(kind: str, files: tuple[Path, ...], form: CsvForm) -> Iterator[Rows]:
    reader = _text_kind(kind, files, form)
    if kind == "csv" and form.field_delim is None:
        _tell_delimiter(files[0], reader.columns)
    for path in files:
        for piece in pieces_of(reader, path, None):
            found = reader.tables(piece, all_bad_rows=True)
            if found.bad:
                reader, found = _wider(reader, piece, found)
            for table, where in found.found:
                yield _rows(table.select(reader.columns), where)
            if found.bad:
                yield Rows({}, 0, str, found.bad)


def _tell_delimiter(path: Path, names: Sequence[str]) -> None:
    """Warns of a file that is read as one column although its header seems to have several."""
    (first, *others) = names
    found = next((one for one in ";\t|," if one in first), None)
    if found is not None and not others:
        shown = "$'\\t'" if found == "\t" else f"'{found}'"
        _log.warning(
            "%s has one column, %r. If %r separates columns, give --field-delim %s.", path, first, found, shown
        )


def _text_kind(kind: str, files: tuple[Path, ...], form: CsvForm) -> Any:
    """Returns the reader of files of lines. Real numbers are float64, so that sums match the text of the file."""
    import estimator_inputs as inputs

    options: dict[str, Any] = {"shuffle": False, "on_error": "skip", "block_bytes": _BLOCK}
    if kind == "csv":
        options |= {"num_rows_for_inference": _LOOKED_AT, "field_delim": form.field_delim}
        options |= {"na_values": ("", *form.na_values), "quoted_na": True}
    make: Callable[..., Any] = inputs.csv_input_fn if kind == "csv" else inputs.jsonl_input_fn
    types = make(files, 1, **options).kind.schema.types
    real = {name: "float64" for name, one in types.items() if one.dtype == np.float32}
    return make(files, 1, column_types=real, **options).kind


def _wider(reader: Any, piece: Any, found: Tables) -> tuple[Any, Tables]:
    """Returns a reader that reads integer columns as real if later rows are real, and the tables of the piece."""
    for name, kind in reader.schema.types.items():
        if kind.dtype.kind not in "iu":
            continue
        types = {**reader.schema.types, name: replace(kind, dtype=np.dtype(np.float64))}
        wider = copy.copy(reader)
        wider.schema = replace(reader.schema, types=types)
        again = wider.tables(piece, all_bad_rows=True)
        if len(again.bad) < len(found.bad):
            reader, found = wider, again
    return reader, found


def _rows(table: Any, where: Callable[[int], str]) -> Rows:
    """Returns rows of a file. Real numbers have the dtype that the inputs return."""
    cells = {field.name: cells_in(field.name, table.column(field.name), field) for field in table.schema}
    named = {name: replace(one, dtype="float32") if one.dtype == "float64" else one for name, one in cells.items()}
    return Rows(named, table.num_rows, where)


def _of_parquet(files: tuple[Path, ...]) -> Iterator[Rows]:
    import estimator_inputs as inputs

    reader = inputs.parquet_input_fn(files, 1, shuffle=False).kind
    for path in files:
        held: list[Any] = []
        begin = rows = 0
        for piece in pieces_of(reader, path, None):
            _, batch = piece.content
            held.append(batch)
            rows += batch.num_rows
            if rows >= PIECE:
                yield _of_batches(path, reader.columns, held, begin)
                held, begin, rows = [], begin + rows, 0
        if held:
            yield _of_batches(path, reader.columns, held, begin)


def _of_batches(path: Path, names: Sequence[str], batches: Sequence[Any], begin: int) -> Rows:
    """Returns the rows of consecutive batches of a file. `begin` is the number of the first row."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    where = _numbered(path, "row", range(begin, begin + table.num_rows))
    return _rows(table.select(names), where)


def _of_tfrecords(files: tuple[Path, ...]) -> Iterator[Rows]:
    import estimator_inputs as inputs

    features = {name: _of_any_length(spec) for name, spec in tfrecord_features(files[0]).items()}
    options: dict[str, Any] = {"shuffle": False, "on_error": "skip", "block_bytes": _BLOCK}
    reader = inputs.tfrecord_input_fn(files, 1, features, **options).kind
    for path in files:
        for piece in pieces_of(reader, path, None):
            block = reader.decode(piece, all_bad_rows=True)
            bad = [row.number for row in block.bad]
            kept = np.setdiff1d(np.arange(block.first, block.first + block.rows + len(bad)), bad)
            yield _of_examples(block.columns, _numbered(path, "record", kept), block.bad)


def _of_array_records(files: tuple[Path, ...]) -> Iterator[Rows]:
    from estimator_inputs.array_record import blocks_of_records, some_records

    guessed = guessed_features(some_records(files[0], _RECORDS), str(files[0]))
    features = feature_specs({name: _of_any_length(spec) for name, spec in guessed.items()})
    for path in files:
        for numbers, columns, bad in blocks_of_records(path, features):
            yield _of_examples(columns, _numbered(path, "record", numbers), bad)


def _of_examples(columns: Mapping[str, Column], where: Callable[[int], str], bad: Sequence[BadRow]) -> Rows:
    cells: dict[str, Cells] = {}
    for name, column in columns.items():
        assert isinstance(column, Ragged)
        cells[name] = ragged_cells(column.values, column.lengths)
    return Rows(cells, rows_of(columns) if columns else 0, where, bad)


def tfrecord_features(path: Path) -> dict[str, Any]:
    """Returns the features of the first records of a file.

    Raises:
        InputError: no record can be read, or none is a tf.Example.
    """
    return guessed_features(itertools.islice(_readable_records(path), _RECORDS), str(path))


def _readable_records(path: Path) -> Iterator[bytes]:
    from estimator_inputs.tfrecord.records import frames_of

    found, fault = False, None
    for frames in frames_of(path, "auto", block_bytes=1 << 18, resync=True):
        found, fault = found or bool(len(frames.begins)), fault or frames.fault
        for begin, size in zip(frames.begins.tolist(), frames.sizes.tolist(), strict=True):
            yield frames.data[begin : begin + size]
    if fault is not None and not found:
        raise InputError(f"{path}, record 0: {fault}.")


def _of_any_length(spec: Any) -> Any:
    from estimator_inputs.examples.features import VarLenFeature

    return VarLenFeature(spec.dtype)


def _numbered(path: Path, word: str, numbers: Sequence[int] | np.ndarray) -> Callable[[int], str]:
    return lambda row: f"{path}, {word} {numbers[row]}"
