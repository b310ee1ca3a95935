"""The readers of the command: all columns as text to infer their kinds, and typed columns to train."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_tabular.cli.arrow_types import binary_columns, check_no_later_columns, is_parquet, nested_columns
from estimator_canned_tabular.cli.csv_form import CsvForm
from estimator_canned_tabular.cli.profile import ColumnProfile, as_weights
from estimator_canned_tabular.cli.schema import Schema
from estimator_core.errors import ArgumentError
from estimator_inputs import FileInput, csv_input_fn, parquet_input_fn

_BATCH = 4096
#: The type that columns of each kind are read as. Other kinds are read as words.
_TYPES = {"numeric": "float32", "boolean": "bool"}
#: Suffixes of files that are not CSV.
_NOT_READ = (".jsonl", ".json", ".ndjson", ".tfrecord", ".feather", ".arrow", ".xlsx", ".xls", ".npz")
#: The characters that may separate the columns of a CSV file.
_OTHERS = (";", "\t", "|", ",")
_USUAL = CsvForm()


def opener_of(path: Path, form: CsvForm = _USUAL) -> functools.partial[FileInput]:
    """Returns the input_fn for a file: Parquet by the suffix or the first bytes, otherwise CSV.

    Raises:
        ArgumentError: the suffix belongs to another format.

    Example:
        >>> opener_of(Path("rows.parquet")).func.__name__, opener_of(Path("rows.csv.gz")).func.__name__
        ('parquet_input_fn', 'csv_input_fn')
    """
    suffix = path.suffix.lower()
    if suffix in _NOT_READ:
        raise ArgumentError(
            f"{path}: rows are read from CSV and Parquet files. Convert the file, for example with "
            "DataFrame.to_parquet."
        )
    return functools.partial(parquet_input_fn if is_parquet(path) else csv_input_fn, **form.options(path))


def profiles_of(
    path: Path, label: str, on_error: Any, form: CsvForm = _USUAL, weight_column: str | None = None
) -> dict[str, ColumnProfile]:
    """Returns the profiles of all columns of a file, gathered in one pass. The numbers of the label are weighted.

    Raises:
        ArgumentError: there is no label column. The message names the likely reason.
        InputError: the file cannot be read. The message names file and line.
    """
    names = _columns_of(path, form)
    if label not in names:
        raise ArgumentError(f"{path}: there is no column {label!r}. Columns: {', '.join(names)}.{_hint(names, label)}")
    nested = nested_columns(path)
    profiles = {name: ColumnProfile(nested.get(name, "")) for name in names}
    flat = [name for name in names if name not in nested]
    if not flat:
        return profiles
    types = dict.fromkeys(flat, "string")
    opened = opener_of(path, form)
    if nested:
        check_no_later_columns(path)
    chosen = flat if nested else None  # None refuses a column that only a later file has
    source = opened(path, _BATCH, shuffle=False, select_columns=chosen, column_types=types, on_error=on_error)
    binary = binary_columns(path)
    for batch in source():
        weights = as_weights(batch[weight_column].tolist()) if weight_column in batch else None
        for name, values in batch.items():
            profile = profiles[name]
            if name in binary and not profile.unread and not all(map(_is_text, values.tolist())):
                profile.unread = "bytes that are not text in UTF-8"
            if not profile.unread:
                profile.add(values.tolist(), weights if name == label else None)
    return profiles


def has_rows(path: Path, count: int, on_error: Any, form: CsvForm = _USUAL) -> bool:
    """Returns whether a file has at least this many rows. Of a long file, only the beginning is read.

    Raises:
        ArgumentError, InputError: the file cannot be read.
    """
    nested = nested_columns(path)
    types = {name: "string" for name in _columns_of(path, form) if name not in nested}
    if not types:
        return False
    options = {"shuffle": False, "select_columns": list(types), "column_types": types, "on_error": on_error}
    first = next(opener_of(path, form)(path, count, **options)(), None)
    return first is not None and len(next(iter(first.values()))) == count


def typed_input(
    path: Path,
    schema: Schema,
    weight_column: str | None,
    batch_size: int,
    *,
    shuffle: bool,
    form: CsvForm = _USUAL,
    **options: Any,
) -> FileInput:
    """Returns the input with the features and labels of a file.

    An empty number is replaced by the mean. A row whose label is not one of the classes is a bad row.

    Raises:
        ArgumentError: a column is missing.
    """
    found = _columns_of(path, form)
    weights = [weight_column] if weight_column else []
    used = {name: column for name, column in schema.columns.items() if column.kind != "skip" and name not in weights}
    for name in (*used, *weights, schema.label):
        if name not in found:
            raise ArgumentError(f"{path} lacks the column {name!r}. Columns: {', '.join(found)}.{_between(found)}")
    for name, content in nested_columns(path).items():
        if name in (*used, *weights, schema.label):
            raise ArgumentError(
                f"{path}: the column {name!r} holds {content}. Write one number or word per row into a separate "
                "column, or leave this one out: kind skip in columns.json."
            )
    kinds = {name: _TYPES.get(column.kind, "string") for name, column in used.items()}
    label = {schema.label: "bool" if schema.has_truths else "string" if schema.classes else "float32"}
    return opener_of(path, form)(
        path,
        batch_size,
        shuffle=shuffle,
        label_name=schema.label,
        select_columns=[*kinds, *weights, schema.label],
        column_types={**kinds, **dict.fromkeys(weights, "float32"), **label},
        column_defaults={name: value for name, value in defaults_of(schema).items() if name in used},
        vocabularies={schema.label: schema.classes} if schema.classes and not schema.has_truths else None,
        **options,
    )


def defaults_of(schema: Schema) -> dict[str, float]:
    """Returns the value of empty fields by column: the mean of numbers, or the more frequent truth value."""
    numbers = {name: float(np.float32(one.mean)) for name, one in schema.columns.items() if one.kind == "numeric"}
    return numbers | {name: one.mean >= 0.5 for name, one in schema.columns.items() if one.kind == "boolean"}


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _hint(names: Sequence[str], label: str) -> str:
    """Returns why a label may not be among the columns, or an empty string if there is no hint."""
    if between := _between(names):
        return between
    alike = [name for name in names if name.strip().casefold() == label.strip().casefold()]
    return f" It is called {alike[0]!r} there: give --label {alike[0]!r}." if alike else ""


def _between(names: Sequence[str]) -> str:
    """Returns a hint on the character between columns if a file appears to have one column, or an empty string."""
    (first, *others) = names
    for delimiter in () if others else _OTHERS:
        if delimiter in first:
            shown = "$'\\t'" if delimiter == "\t" else f"'{delimiter}'"
            return f" Its columns are separated by {delimiter!r}: --field-delim {shown}."
    return ""


def _columns_of(path: Path, form: CsvForm) -> tuple[str, ...]:
    return opener_of(path, form)(path, 1, shuffle=False).columns
