"""Files for the tests: the same rows as CSV, JSON lines, Parquet, TFRecord and ArrayRecord."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from estimator_core import export
from estimator_inputs import write_tfrecord

Rows = Mapping[str, np.ndarray]


def some_rows(n: int, seed: int = 0) -> dict[str, Any]:
    """Numbers and words. `id` identifies the rows."""
    generator = np.random.default_rng(seed)
    words = [b"ape", b"bee", b"", "c\u00e4t".encode(), b'do"g', b"e,mu", b"fl\ny"]
    return {
        "id": np.arange(n),
        "weight": generator.normal(size=n).astype(np.float32),
        "count": generator.integers(-1000, 1000, n),
        "word": np.array([words[k] for k in generator.integers(0, len(words), n)] + [None], object)[:-1],
        "label": generator.integers(0, 3, n),
    }


def example(row: Mapping[str, Any]) -> bytes:
    """One tf.Example, written by protobuf."""
    message = export.example_class()()
    for name, value in row.items():
        feature = message.features.feature[name]
        values = np.atleast_1d(np.asarray(value, object)).tolist()
        if any(isinstance(item, (bytes, str)) for item in values):
            feature.bytes_list.value.extend([v.encode() if isinstance(v, str) else v for v in values])
        elif any(isinstance(item, (float, np.floating)) for item in values):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(int(item) for item in values)
    return message.SerializeToString()


def row_dicts(rows: Rows) -> list[dict[str, Any]]:
    n = len(next(iter(rows.values())))
    return [{name: values[i] for name, values in rows.items()} for i in range(n)]


def parts_of(rows: Rows, parts: int) -> list[dict[str, Any]]:
    """Splits rows into this number of neighbouring parts."""
    n = len(next(iter(rows.values())))
    borders = np.linspace(0, n, parts + 1).astype(int)
    return [{k: v[a:b] for k, v in rows.items()} for a, b in itertools.pairwise(borders)]


def write_csv(path: Path, rows: Rows, *, header: bool = True) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if header:
            writer.writerow(list(rows))
        for row in row_dicts(rows):
            writer.writerow([v.decode() if isinstance(v, bytes) else _text(v) for v in row.values()])
    return path


def write_jsonl(path: Path, rows: Rows) -> Path:
    with open(path, "w", encoding="utf-8") as file:
        for row in row_dicts(rows):
            file.write(json.dumps({k: _plain(v) for k, v in row.items()}) + "\n")
    return path


def write_parquet(path: Path, rows: Rows, **options: Any) -> Path:
    columns = {
        name: pa.array(v.tolist(), pa.string()) if v.dtype == object else pa.array(v)
        for name, v in _decoded(rows).items()
    }
    pa.parquet.write_table(pa.table(columns), path, **options)
    return path


def write_examples(path: Path, rows: Rows) -> Path:
    write_tfrecord(path, [example(row) for row in row_dicts(rows)])
    return path


SPEC = {
    "id": export.FixedLenFeature((), "int64"),
    "weight": export.FixedLenFeature((), "float32"),
    "count": export.FixedLenFeature((), "int64"),
    "word": export.FixedLenFeature((), "string"),
    "label": export.FixedLenFeature((), "int64"),
}
WRITERS = {
    "csv": (write_csv, "csv"),
    "jsonl": (write_jsonl, "jsonl"),
    "parquet": (write_parquet, "parquet"),
    "tfrecord": (write_examples, "tfrecord"),
}


def write_files(folder: Path, kind: str, rows: Rows, parts: int) -> str:
    """Writes the rows into several files, and returns the pattern that matches them."""
    writer, suffix = WRITERS[kind]
    for number, part in enumerate(parts_of(rows, parts)):
        writer(folder / f"part-{number}.{suffix}", part)
    return f"{folder}/part-*.{suffix}"


def input_of(kind: str, pattern: str, batch_size: int, **options: Any) -> Any:
    """The input function of a kind of file, with a separate label."""
    import estimator_inputs as inputs

    if kind == "tfrecord":
        return inputs.tfrecord_input_fn(pattern, batch_size, SPEC, label_key="label", **options)
    function = {"csv": inputs.csv_input_fn, "jsonl": inputs.jsonl_input_fn, "parquet": inputs.parquet_input_fn}[kind]
    return function(pattern, batch_size, label_name="label", **options)


def ids(batches: Sequence[Any]) -> list[int]:
    """The `id` of every row, in order."""
    return [number for features, _ in batches for number in features["id"].tolist()]


def _decoded(rows: Rows) -> dict[str, Any]:
    return {
        name: np.array([v.decode() for v in values] + [None], object)[:-1] if values.dtype == object else values
        for name, values in rows.items()
    }


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value.item()


def _text(value: Any) -> str:
    return repr(value.item()) if isinstance(value, np.generic) else str(value)
