"""Detection of files without rows. They are common in data sets of several files and are not an error."""

from __future__ import annotations

import csv
from pathlib import Path

from estimator_core.errors import EstimatorError
from estimator_exporters.scoring.array_files import BROKEN, opened


def has_rows(path: Path, kind: str) -> bool:
    """Returns whether a file of tables or records has a row.

    True if it cannot be read: the reader then raises the error.

    Args:
        path: the path of the file.
        kind: the suffix of the file, without the suffix of its compression.
    """
    if kind == ".parquet":
        return _parquet_rows(path)
    if kind == ".tfrecord":
        return _has_record(path)
    try:
        with opened(path) as file:
            lines = (line for line in file if line.strip())
            if kind == ".csv":
                next(csv.reader(lines), None)
            return next(lines, None) is not None
    except BROKEN:
        return True


def _parquet_rows(path: Path) -> bool:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_metadata(str(path)).num_rows > 0
    except (pa.ArrowException, OSError):
        return True


def _has_record(path: Path) -> bool:
    import estimator_inputs

    try:
        return next(iter(estimator_inputs.read_tfrecord(path)), None) is not None
    except EstimatorError:
        return True
