"""Reads files as batches of the inputs of a signature. estimator-inputs reads them if the inputs are table columns."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.export import Feature
from estimator_core.storage import copied_files, is_url
from estimator_exporters.scoring.array_files import columns_there, read_arrays, read_lines
from estimator_exporters.scoring.batch import Batch, fixed_rows
from estimator_exporters.scoring.copied_columns import as_text, number_lists, types_to_keep, values_for_none
from estimator_exporters.scoring.empty_files import has_rows

TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
SUFFIXES = (*TABLES, ".tfrecord", ".npz")
_log = logging.getLogger("estimator_exporters")
#: The largest number of skipped rows that are logged one by one.
_SHOWN = 5
#: A file of this machine, or the location of one for another process.
Location = TypeVar("Location", Path, str)
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The settings for reading files.

    Attributes:
        inputs: the inputs of the signature, by name.
        batch_size: the number of rows per batch.
        defaults: the values for empty fields, by column. Without one, an empty number is an error.
        skip_bad_rows: whether unreadable rows are skipped and counted. Otherwise they are an error.
        keep: the columns that are copied to the output. Inputs keep their type, and other columns become text.
        na_values: the texts that count as empty in input columns of CSV files, in addition to the empty text.
        field_delim: the character between columns of CSV files. None: a comma, or a tab in .tsv files.
    """

    inputs: Mapping[str, Feature]
    batch_size: int
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    skip_bad_rows: bool = False
    keep: Sequence[str] = ()
    na_values: Sequence[str] = ()
    field_delim: str | None = None

    def __post_init__(self) -> None:
        """Refuses an invalid separator.

        Raises:
            ArgumentError: the separator is not one ASCII character, or is a quote or a line end.
        """
        delim = self.field_delim
        if delim is not None and (len(delim) != 1 or not delim.isascii() or delim in '\r\n"'):
            raise ArgumentError(
                f"--field-delim must be one ASCII character other than a quote or a line end, given: {delim!r}."
            )


def find(patterns: Sequence[str]) -> list[Path]:
    """Returns the files of paths and glob patterns, each once, sorted by name per pattern. URLs are copied first.

    Raises:
        ArgumentError: no file matches, or a file has an unsupported suffix.
        StorageError: a URL cannot be read.
    """
    return readable(patterns, lambda pattern: copied_files(pattern) if is_url(pattern) else here(pattern))


def readable(patterns: Sequence[str], files_of: Callable[[str], Sequence[Location]]) -> list[Location]:
    """Returns the files of several patterns, each once.

    Args:
        patterns: the patterns, in the order of the files.
        files_of: returns the files that match a pattern.

    Raises:
        ArgumentError: no file matches, or a file has an unsupported suffix.
    """
    found: dict[Location, None] = {}
    for pattern in patterns:
        files = files_of(pattern)
        if not files:
            raise ArgumentError(f"--input: no file matches {pattern!r}.")
        for one in files:
            if suffix_of(Path(one)) not in SUFFIXES:
                raise ArgumentError(f"--input: {one} must end in {', '.join(SUFFIXES)}, or one of those and .gz.")
        found |= dict.fromkeys(files)
    return list(found)


def here(pattern: str) -> list[Path]:
    """Returns the files of a path or a glob pattern, sorted by name.

    Raises:
        ArgumentError: the path is a directory.
    """
    path = Path(os.path.expanduser(pattern))
    if pattern and path.is_dir():
        raise ArgumentError(f"--input: {path} is a directory: name the files in it, such as {str(path / '*')!r}.")
    base = Path(path.anchor or ".")
    relative = path.relative_to(base) if path.anchor else path
    if path.is_file():
        return [path]
    return sorted(one for one in base.glob(str(relative)) if one.is_file()) if relative.parts else []


def suffix_of(path: Path) -> str:
    """Returns the suffix that determines the kind of a compressed or plain file.

    Example:
        >>> suffix_of(Path("rows.csv.gz"))
        '.csv'
    """
    return path.with_suffix("").suffix if path.suffix in _PACKED else path.suffix


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Yields the rows of a file. All batches except the last are full, unless rows of Parquet are skipped.

    Raises:
        ArgumentError, InputError: a row cannot be read. The message names file, row and column.
    """
    kind = suffix_of(path)
    if kind == ".tsv":
        kind, reading = ".csv", replace(reading, field_delim=reading.field_delim or "\t")
    flat = all(feature.shape[1:] in ((), (1,)) for feature in reading.inputs.values())
    listed = all(len(feature.shape) <= 2 for feature in reading.inputs.values())
    if kind == ".npz":
        return _plain(path, read_arrays(path, reading), reading)
    if kind == ".tfrecord":
        _need("estimator_inputs")
        return _records(path, reading) if has_rows(path, kind) else iter(())
    if (kind == ".csv" and flat) or (kind == ".jsonl" and flat) or (kind == ".parquet" and listed):
        _need("estimator_inputs", "pyarrow")
        return _tables(path, kind, reading) if has_rows(path, kind) else iter(())
    if kind == ".parquet":
        wide = [name for name, feature in reading.inputs.items() if len(feature.shape) > 2]
        raise ArgumentError(
            f"{path}: {wide} has more than one axis per row, but a Parquet column has at most one. Use .npz or .jsonl."
        )
    return _plain(path, read_lines(path, kind, reading), reading)


def _plain(path: Path, columns: Iterator[dict[str, np.ndarray]], reading: Reading) -> Iterator[Batch]:
    first = 0
    for batch in columns:
        kept = {name: batch[name] for name in reading.keep}
        yield Batch(path, first, {name: batch[name] for name in reading.inputs}, kept)
        first += len(next(iter(batch.values())))


def _tables(path: Path, kind: str, reading: Reading) -> Iterator[Batch]:
    import estimator_inputs

    no_value = dict.fromkeys(reading.inputs, ("", *reading.na_values))
    of_csv: dict[str, Any] = {"field_delim": reading.field_delim, "quoted_na": True}
    openers: dict[str, Callable[..., estimator_inputs.FileInput]] = {
        ".csv": functools.partial(estimator_inputs.csv_input_fn, **of_csv),
        ".parquet": estimator_inputs.parquet_input_fn,
        ".jsonl": estimator_inputs.jsonl_input_fn,
    }
    beside = [name for name in reading.keep if name not in reading.inputs]
    # JSON numbers are read as numbers and become texts afterwards. Other files contain texts of numbers.
    kept = types_to_keep(path, kind, beside)
    if kept is None:
        return _plain(path, read_lines(path, kind, reading), reading)
    types = kept | {name: _read_as(each) for name, each in reading.inputs.items()}
    defaults = {name: value for name, value in reading.defaults.items() if name in reading.inputs}
    try:
        source = openers[kind](
            str(path),
            reading.batch_size,
            shuffle=False,
            select_columns=list(types),
            column_types=types,
            column_defaults=values_for_none(kept) | defaults,
            on_error="skip" if reading.skip_bad_rows else "raise",
            **({"na_values": no_value} if kind == ".csv" else {}),
        )
    except ArgumentError:
        _check_columns(path, openers[kind](str(path), 1, shuffle=False).columns, reading)
        raise
    return _batches(path, source, reading, number_lists(path, kind, beside))


def _read_as(feature: Feature) -> str:
    """Returns the type of a column. Lists of unsigned numbers are read as signed, because only these are padded with
    -1.
    """
    listed = len(feature.shape) == 2 and feature.shape[1] != 1
    return "int64" if listed and feature.dtype.startswith("uint") else feature.dtype


def _check_columns(path: Path, found: Sequence[str], reading: Reading) -> None:
    there = columns_there(found)
    missing = sorted(reading.inputs.keys() - set(found))
    if missing == ["examples"] and _takes_examples(reading):
        raise ArgumentError(
            f"{path} has columns, but the signature takes serialized tf.Examples. Score .tfrecord files with it, or "
            "export the model with build_raw_serving_input_receiver_fn, which takes columns."
        )
    if missing:
        raise ArgumentError(
            f"{path} lacks the columns {missing}. {there} The signature takes {sorted(reading.inputs)}."
        )
    if unknown := sorted(set(reading.keep) - set(found)):
        raise ArgumentError(f"--keep: {path} has no column {unknown[0]!r}. {there} Correct the name.")


def _takes_examples(reading: Reading) -> bool:
    return "examples" in reading.inputs and [one.dtype for one in reading.inputs.values()] == ["string"]


def _records(path: Path, reading: Reading) -> Iterator[Batch]:
    import estimator_inputs

    if reading.keep:
        raise ArgumentError("--keep: records of a TFRecord file have no columns.")
    if _takes_examples(reading):
        return _whole_records(path, reading)
    specs = {
        name: estimator_inputs.FixedLenFeature(_known(feature), feature.dtype, reading.defaults.get(name))
        for name, feature in reading.inputs.items()
    }
    source = estimator_inputs.tfrecord_input_fn(
        str(path),
        reading.batch_size,
        specs,
        shuffle=False,
        on_error="skip" if reading.skip_bad_rows else "raise",
    )
    return _batches(path, source, reading)


def _known(feature: Feature) -> tuple[int, ...]:
    return tuple(size or 1 for size in feature.shape[1:])


def _whole_records(path: Path, reading: Reading) -> Iterator[Batch]:
    """Yields serialized tf.Examples, which the export parses itself."""
    import estimator_inputs

    records: list[bytes] = []
    first = 0
    for record in estimator_inputs.read_tfrecord(path):
        records.append(record)
        if len(records) == reading.batch_size:
            yield Batch(path, first, {"examples": np.array(records, object)}, {})
            first, records = first + len(records), []
    if records:
        yield Batch(path, first, {"examples": np.array(records, object)}, {})


def _batches(path: Path, source: Any, reading: Reading, number_lists: Collection[str] = ()) -> Iterator[Batch]:
    import estimator_inputs

    first, batches, skipped = 0, iter(source().next_columns, None), 0
    while True:
        try:
            batch = next(batches, None)
        except estimator_inputs.NoRowsError:  # all rows are bad and skipped
            batch = None
        if batch is None:
            break
        bad = _misfits(path, first, batch, reading)
        for told in list(bad.values())[: max(_SHOWN - skipped, 0)]:
            _log.warning("Skipped %s", told)
        arrays = {name: _fitted(batch[name], feature) for name, feature in reading.inputs.items()}
        kept = {
            name: arrays[name] if name in arrays else as_text(batch[name], numbers=name in number_lists)
            for name in reading.keep
        }
        rows = len(next(iter(arrays.values())))
        if bad:
            arrays, kept = (
                {name: np.delete(array, list(bad), axis=0) for name, array in each.items()} for each in (arrays, kept)
            )
        if len(bad) < rows:
            yield Batch(path, first - skipped, arrays, kept)
        first, skipped = first + rows, skipped + len(bad)
    if skipped:
        _log.warning("Skipped %d rows of %s whose lists do not fit the signature.", skipped, path)


def _misfits(path: Path, first: int, batch: Mapping[str, Any], reading: Reading) -> dict[int, str]:
    """Returns the rows with lists of unsuitable length, with an error message for each.

    Lists of strings, and lists of numbers whose default is NaN, are padded. Other lists must be as long as the input.

    Raises:
        ArgumentError: there is such a row, and bad rows are not skipped or each batch has to be full.
    """
    bad: dict[int, str] = {}
    for name, feature in reading.inputs.items():
        column, width = batch[name], feature.shape[1] if len(feature.shape) > 1 else None
        if isinstance(column, np.ndarray) or width is None:
            continue
        filled = column.values.dtype == object or bool(np.isnan(column.fill))
        for row in np.flatnonzero(column.lengths > width if filled else column.lengths != width).tolist():
            told = (
                f"{path}, row {first + row}: column {name!r} has {int(column.lengths[row])} values, but the signature "
                f"takes {width}."
            )
            if not reading.skip_bad_rows or fixed_rows(reading.inputs) is not None:
                raise ArgumentError(told)
            bad.setdefault(row, told)
    return bad


def _fitted(column: Any, feature: Feature) -> np.ndarray:
    """Returns a column in the shape of an input."""
    if isinstance(column, np.ndarray):
        return column.reshape(len(column), *_known(feature)) if len(feature.shape) != column.ndim else column
    width = feature.shape[1] if len(feature.shape) > 1 else None
    dense = column.dense()
    if width is None:
        return dense
    dense = dense[:, :width]  # its width is a power of two
    missing = width - dense.shape[1]
    return np.pad(dense, ((0, 0), (0, missing)), constant_values=column.fill) if missing else dense


def _need(*modules: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ArgumentError(
            f"Reading these files needs {', '.join(missing)}. Install it: pip install 'estimator-exporters[predict]'"
        )
