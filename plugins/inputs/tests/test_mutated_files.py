"""Damaged files: the result is the right rows, or an error that names the file, never an exception of a library."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from estimator_core.errors import ArgumentError, InputError
from estimator_inputs import learn_schema
from plugins.inputs.tests.mutations import mutated
from plugins.inputs.tests.written import (
    input_of,
    row_dicts,
    some_rows,
    write_csv,
    write_examples,
    write_jsonl,
    write_parquet,
)

ROWS = 60
FEW, MANY = 50, 2000
#: Fewer mutations of compressed files are read in the ordinary tests, because one check finds their damage.
FEW_OF = dict.fromkeys(("csv.gz", "csv.bz2", "csv.xz", "jsonl.zst", "jsonl.lz4", "tfrecord.gz", "zlib.tfrecord"), 20)


def _arrow(kind: str) -> Callable[[bytes], bytes]:
    def compress(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, kind) as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()

    return compress


#: Suffix -> (kind, writer of the plain file, compression, whether damage is always detected).
FILES: dict[str, tuple[str, Any, Callable[[bytes], bytes], bool]] = {
    "csv": ("csv", write_csv, bytes, False),
    "jsonl": ("jsonl", write_jsonl, bytes, False),
    "tfrecord": ("tfrecord", write_examples, bytes, True),
    "parquet": ("parquet", lambda path, rows: write_parquet(path, rows, **_CHECKED), bytes, True),
    "snappy.parquet": ("parquet", lambda path, rows: write_parquet(path, rows, compression="snappy"), bytes, False),
    "csv.gz": ("csv", write_csv, gzip.compress, True),
    "csv.bz2": ("csv", write_csv, bz2.compress, True),
    "csv.xz": ("csv", write_csv, lzma.compress, True),
    "jsonl.zst": ("jsonl", write_jsonl, _arrow("zstd"), False),
    "jsonl.lz4": ("jsonl", write_jsonl, _arrow("lz4"), False),
    "tfrecord.gz": ("tfrecord", write_examples, gzip.compress, True),
    "zlib.tfrecord": ("tfrecord", write_examples, zlib.compress, True),
}
#: The words for places of damage in errors.
PLACE = re.compile(
    r"line|lines|record|row|rows|row group|footer|after byte|column|is empty|has no rows|no header".replace("|", r"\b|")
    + r"\b"
)
_CHECKED = {"write_page_checksum": True, "compression": "none", "row_group_size": 25}


def read(suffix: str, path: Path, **options: Any) -> list[dict[str, Any]]:
    kind = FILES[suffix][0]
    if suffix == "zlib.tfrecord":
        options["compression"] = "zlib"
    if kind == "csv":
        options["column_types"] = {"word": "string"}
    iterator = input_of(kind, str(path), 16, shuffle=False, **options)()
    found: list[dict[str, Any]] = []
    for features, labels in iterator:
        found += row_dicts({**features, "label": labels})
    return found


def check(suffix: str, folder: Path, seeds: range) -> None:
    kind, writer, compress, seen = FILES[suffix]
    path = folder / f"rows.{suffix}"
    whole = compress(writer(folder / f"plain.{kind}", some_rows(ROWS)).read_bytes())
    path.write_bytes(whole)
    right = read(suffix, path)
    assert len(right) == ROWS
    for seed in seeds:
        damaged = mutated(seed, whole)
        path.write_bytes(damaged)
        unchecked = _footer(kind, whole)
        checked = seen and (not unchecked or damaged[-unchecked:] == whole[-unchecked:])
        for options in ({}, {"on_error": "skip"}):
            found, error = rows_or_error(lambda options=options: read(suffix, path, **options))
            assert error is None or (path.name in error and PLACE.search(error)), (suffix, seed, error)
            # a complete record may be missing or repeated, but each record that is read is right
            assert not checked or all(row in right for row in found), (suffix, seed)
        _, error = rows_or_error(lambda: [learn_schema(path)])
        assert error is None or path.name in error or "no rows" in error, (suffix, seed, error)


def _footer(kind: str, whole: bytes) -> int:
    """The number of bytes at the end without a checksum: the footer of Parquet."""
    return 8 + int.from_bytes(whole[-8:-4], "little") if kind == "parquet" else 0


def rows_or_error(call: Callable[[], list[Any]]) -> tuple[list[Any], str | None]:
    """The result of a call, or the text of a proper error."""
    try:
        return call(), None
    except (InputError, ArgumentError) as error:
        return [], str(error)


@pytest.mark.parametrize("suffix", list(FILES))
def test_mutated_files(tmp_path: Path, suffix: str) -> None:
    check(suffix, tmp_path, range(FEW_OF.get(suffix, FEW)))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", list(FILES))
def test_many_mutated_files(tmp_path: Path, suffix: str) -> None:
    check(suffix, tmp_path, range(FEW, FEW + MANY))


def test_damage_for_which_pyarrow_raises_a_system_error(tmp_path: Path) -> None:
    """Five of 2,000 damaged zstd files make it request a negative number of bytes from Python."""
    check("jsonl.zst", tmp_path, range(309, 310))
