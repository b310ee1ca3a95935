"""Readers of files with arrays in their rows: JSON lines, CSV with JSON in its fields, and npz."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import itertools
import json
import logging
import lzma
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.export import Feature
from estimator_exporters.bundle.loaded import casts, numpy_dtype, out_of_range
from estimator_exporters.bundle.not_finite import unnamed

if TYPE_CHECKING:
    from estimator_exporters.scoring.read import Reading

#: The largest number of skipped rows that are logged one by one, as in other readers.
_SHOWN = 5
#: The number of JSON lines that determine the types of the values.
_LOOKED_AT = 10_000
_UNPACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_ARROW = {".zst": "zstd", ".lz4": "lz4"}
#: The dtypes of columns by the Python types of their values. The first match is used.
_KINDS: tuple[tuple[str, set[type]], ...] = (
    ("string", {str}),
    ("bool", {bool}),
    ("int64", {int}),
    ("float64", {int, float}),
)
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
#: The range of integers that columns of numbers represent exactly.
_EXACT = {"int64": (-(2**63), 2**63 - 1), "float64": (-(2**53), 2**53)}
#: The exceptions that reading a damaged file raises.
BROKEN = (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error, csv.Error)
# A field may contain the JSON of a whole array.
csv.field_size_limit(2**31 - 1)
_log = logging.getLogger("estimator_exporters")


def read_arrays(path: Path, reading: Reading) -> Iterator[dict[str, np.ndarray]]:
    """Yields the arrays of an npz file in batches. The file is held in memory.

    Raises:
        ArgumentError: the file is damaged, or arrays are missing, single values, or of different lengths. The message
            names them.
    """
    wanted = [*reading.inputs, *reading.keep]
    try:
        found = _named_arrays(path, wanted)
    except (*BROKEN, zipfile.BadZipFile, ValueError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from error
    missing = sorted(set(wanted) - found.keys())
    if missing:
        raise ArgumentError(f"{path} lacks {missing}; the signature takes {sorted(reading.inputs)}.")
    single = sorted(name for name, array in found.items() if not array.ndim)
    if single:
        raise ArgumentError(f"{path}: {single} hold a single value. The first axis of each array must be the rows.")
    sizes = {name: len(array) for name, array in found.items()}
    if len(set(sizes.values())) != 1:
        raise ArgumentError(f"{path} must have the same number of rows for every input: {sizes}.")
    for start in range(0, next(iter(sizes.values())), reading.batch_size):
        yield {name: array[start : start + reading.batch_size] for name, array in found.items()}


def _named_arrays(path: Path, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    with path.open("rb") as file:  # numpy itself leaves a damaged file open
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):  # numpy.save wrote it: its only array has no name
            return {}
        return {name: loaded[name] for name in wanted if name in loaded}


def read_lines(path: Path, kind: str, reading: Reading) -> Iterator[dict[str, np.ndarray]]:
    """Yields the rows of a compressed or plain file with JSON in it, line by line.

    Raises:
        ArgumentError: a row does not fit and bad rows are not skipped. The message names file, line and column. Also
            raised if no row has a column to keep.
    """
    try:
        with opened(path) as file:
            rows = _objects(file) if kind == ".jsonl" else _records(path, file, reading)
            ready = _fitting(path, rows, reading)
            while some := list(itertools.islice(ready, reading.batch_size)):
                yield {name: _stacked([row[name] for row in some], reading.inputs.get(name)) for name in some[0]}
    except BROKEN as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from error


def types_of_lines(path: Path, names: Sequence[str]) -> dict[str, str] | None:
    """Returns the types of the values in the first lines of a JSON lines file: "int64", "float64", "bool" or "string".

    Returns None for mixed types, lists, objects, integers that would be rounded, and missing truth values.

    Raises:
        ArgumentError: the file cannot be read.
    """
    try:
        with opened(path) as file:
            rows = [row for _, row in itertools.islice(_objects(file), _LOOKED_AT) if isinstance(row, dict)]
    except BROKEN as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from error
    found = {name: _type([row.get(name) for row in rows]) for name in names}
    types = {name: kind for name, kind in found.items() if kind is not None}
    return types if len(types) == len(found) else None


def _type(values: Sequence[Any]) -> str | None:
    kinds = {type(value) for value in values} - {type(None)}
    found = next((kind for kind, known in _KINDS if kinds <= known), None)
    whole = [value for value in values if type(value) is int]
    least, most = _EXACT.get(found or "", (0, 0))
    if whole and not least <= min(whole) <= max(whole) <= most:
        return None
    return None if found == "bool" and None in values else found


@contextlib.contextmanager
def opened(path: Path) -> Generator[TextIO]:
    """Opens a compressed or plain text file."""
    # The codec removes a byte order mark, which Excel writes. It is not part of the first name.
    options: dict[str, Any] = {"newline": "", "encoding": "utf-8-sig"}
    if path.suffix not in _ARROW:
        with _UNPACKED.get(path.suffix, open)(path, "rt", **options) as file:
            yield file
        return
    import pyarrow as pa

    with TextIOWrapper(pa.input_stream(str(path), compression=_ARROW[path.suffix]), **options) as file:
        yield file


def _fitting(path: Path, rows: Iterator[tuple[int, Any]], reading: Reading) -> Iterator[dict[str, Any]]:
    texts = {name for name, feature in reading.inputs.items() if feature.dtype == "string"} - reading.defaults.keys()
    read, skipped, unseen = 0, 0, texts.union(reading.keep)  # a row may lack a text, but not a number
    for line, row in rows:
        unseen -= row.keys() if unseen and isinstance(row, dict) else set()
        try:
            yield _row(f"{path}, line {line}", row, reading)
            read += 1
        except ArgumentError as error:
            if not reading.skip_bad_rows:
                raise
            skipped += 1
            if skipped <= _SHOWN:
                _log.warning("Skipped %s", error)
    if skipped:
        _log.warning("Skipped %d rows of %s that cannot be read.", skipped, path)
    if unseen and read:  # a file without good rows proves nothing
        if absent := sorted(unseen & texts):
            raise ArgumentError(f"{path} lacks the columns {absent}. The signature takes {sorted(reading.inputs)}.")
        raise ArgumentError(f"--keep: no row of {path} has a column {sorted(unseen)[0]!r}. Correct the name.")


def _objects(file: Any) -> Iterator[tuple[int, Any]]:
    for line, text in enumerate(file, start=1):
        if text.strip():
            try:
                yield line, json.loads(text, object_pairs_hook=_each_once)
            except (ValueError, RecursionError) as error:
                yield line, error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"an object has the key {key!r} twice")
        found[key] = value
    return found


def columns_there(found: Sequence[str]) -> str:
    """Returns the part of an error message that describes the columns of a file."""
    there = f"Its columns are: {', '.join(found)}."
    between = len(found) == 1 and any(delim in found[0] for delim in ",;\t|")
    return f"{there} Is another character between them? Name it: --field-delim." if between else there


def _records(path: Path, file: Any, reading: Reading) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(file, delimiter=reading.field_delim or ",")
    names = list(reader.fieldnames or ())
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ArgumentError(f"{path}, line 1: two columns have the name {twice[0]!r}. Rename one.")
    absent = sorted(reading.inputs.keys() - set(names))
    if names and absent:
        raise ArgumentError(f"{path} lacks the columns {absent}. {columns_there(names)}")
    for row in reader:
        excess = row.pop(None, ())  # pyright: ignore[reportArgumentType, reportCallIssue]
        lacking = sum(value is None for value in row.values())
        if excess or lacking:
            count, than = len(names) + len(excess) - lacking, "more" if excess else "fewer"
            told = f"{count} fields, {than} than the {len(names)} columns ({', '.join(names)}). Correct it."
            yield reader.line_num, ArgumentError(told)
        else:
            empty = [name for name in reading.inputs if row[name] in reading.na_values]
            yield reader.line_num, row | dict.fromkeys(empty, "")


def _row(where: str, row: Any, reading: Reading) -> dict[str, Any]:
    if isinstance(row, ArgumentError):
        raise ArgumentError(f"{where}: {row}") from row
    if isinstance(row, Exception):
        raise ArgumentError(f"{where}: not JSON: {row}.") from row
    if not isinstance(row, dict):
        raise ArgumentError(f"{where} must be an object with {sorted(reading.inputs)}, given: {str(row)[:200]}.")
    found = {name: _value(where, name, row, feature, reading) for name, feature in reading.inputs.items()}
    return {name: _as_text(row.get(name)) for name in reading.keep} | found


def _as_text(value: Any) -> str:
    """Returns the text of a kept value: a text is unchanged, a missing value is empty, and other values become JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _value(where: str, name: str, row: dict[str, Any], feature: Feature, reading: Reading) -> np.ndarray:
    value, text = row.get(name), feature.dtype == "string"
    shape, default = tuple(size or 1 for size in feature.shape[1:]), reading.defaults.get(name)
    fill = "" if text else default if len(shape) == 1 and default != default else None  # NaN pads lists
    if value is None or (value == "" and (shape or not text)):
        if name in reading.defaults and (text or fill is None):
            value = default
        elif fill is not None:  # a missing text is empty, as in other readers
            value = [] if len(shape) == 1 else np.full(shape, "", object)
        else:
            raise ArgumentError(f"{where}: column {name!r} has no value; a row must have {sorted(reading.inputs)}.")
    try:
        if isinstance(value, str) and (shape or not text):
            value = json.loads(value) if shape else _number(value, feature.dtype)
        if isinstance(value, list) and fill is not None and not text:
            value = [fill if item is None else item for item in value]
        array = np.asarray(value, object if text else None)
        if array.dtype.kind == "U" and "float" in feature.dtype:
            array = np.asarray(unnamed(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{where}: column {name!r} cannot be read as {feature.dtype}: {error}.") from error
    if fill is not None and len(shape) == array.ndim == 1 and len(array) < shape[0]:  # as in Parquet files
        array = np.concatenate([array, np.full(shape[0] - len(array), fill, object if text else None)])
    if array.shape != shape:
        raise ArgumentError(f"{where}: column {name!r} must have shape {shape}, given {array.shape}.")
    wanted = numpy_dtype(feature.dtype)
    excess = out_of_range(array, wanted)
    if excess is not None:
        raise ArgumentError(f"{where}: column {name!r} {excess}.")
    if not casts(array, wanted):
        raise ArgumentError(f"{where}: column {name!r} cannot be read as {feature.dtype}: {str(value)[:200]}.")
    return array.astype(wanted)


def _number(text: str, dtype: str) -> Any:
    """Returns a number or truth value from the text of a CSV field."""
    if dtype == "bool" and text.strip().lower() in _TRUTH:
        return _TRUTH[text.strip().lower()]
    try:
        return json.loads(text)
    except ValueError:
        if dtype == "bool" or "_" in text:
            raise ValueError(f"{text[:200]!r} is not a valid value") from None
        return (float if "float" in dtype else int)(text)


def _stacked(values: list[Any], feature: Feature | None) -> np.ndarray:
    if feature is None or (feature.dtype == "string" and len(feature.shape) == 1):
        return np.array([value if feature is None else value.item() for value in values], object)
    return np.stack(values)
