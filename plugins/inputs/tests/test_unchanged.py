"""Tests of files that are written to, replaced or removed while they are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_core.errors import InputError
from estimator_inputs import learn_schema
from estimator_inputs.text.csv_table import read_table
from plugins.inputs.tests.written import WRITERS, ids, input_of, some_rows, write_parquet

N = 2000


def shifted(first: int) -> dict[str, Any]:
    rows = some_rows(N)
    return {**rows, "id": rows["id"] + first}


def write(path: Path, kind: str, first: int) -> Path:
    """Writes a file of several blocks. The first `id` is `first`."""
    rows = shifted(first)
    return write_parquet(path, rows, row_group_size=100) if kind == "parquet" else WRITERS[kind][0](path, rows)


@pytest.mark.parametrize("options", [{}, {"on_error": "skip"}, {"parser_num_threads": 2}])
@pytest.mark.parametrize("kind", list(WRITERS))
def test_a_file_that_is_written_to_while_it_is_read_is_refused(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    """Rows of the old and of the new file would be mixed, or half a row would be a bad row."""
    path = write(tmp_path / f"rows.{kind}", kind, 0)
    os.utime(path, ns=(1, 1))  # the clock of the file system may be too coarse for this test
    batches = input_of(kind, str(path), 100, shuffle=False, block_bytes=2048, **options)()
    assert ids([next(batches) for _ in range(3)]) == list(range(300))
    write(path, kind, N)
    with pytest.raises(InputError, match=r"rows\.\w+ was written to while it was read"):
        ids(list(batches))


@pytest.mark.parametrize("kind", list(WRITERS))
def test_a_new_time_after_the_last_piece_is_accepted(tmp_path: Path, kind: str) -> None:
    """The rows of the file were read and are the same. A longer file would have more rows."""
    path = write(tmp_path / f"rows.{kind}", kind, 0)
    batches = input_of(kind, str(path), N // 2, shuffle=False, parser_num_threads=0)()
    first = [next(batches), next(batches)]
    os.utime(path, ns=(1, 1))
    assert ids([*first, *batches]) == list(range(N))
    batches = input_of(kind, str(path), N // 2, shuffle=False, parser_num_threads=0)()
    first = [next(batches), next(batches)]
    with path.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(InputError, match="its size was"):
        next(batches)


@pytest.mark.parametrize("kind", list(WRITERS))
def test_a_file_that_is_replaced_or_removed_stays_the_same_for_an_epoch(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / f"rows.{kind}", kind, 0)
    other = write(tmp_path / "other", kind, N)
    batches = input_of(kind, str(path), 100, shuffle=False, block_bytes=2048, num_epochs=2)()
    first = [next(batches) for _ in range(3)]
    os.replace(other, path)
    assert ids([*first, *batches]) == [*range(N), *range(N, 2 * N)]
    batches = input_of(kind, str(path), 100, shuffle=False, block_bytes=2048)()
    first = [next(batches)]
    path.unlink()
    np.testing.assert_array_equal(ids([*first, *batches]), np.arange(N, 2 * N))


def test_statistics_of_a_file_that_is_written_to_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "rows.csv", "csv", 0)

    def changed(*args: Any, **options: Any) -> Any:
        with path.open("a") as file:
            file.write("1,2,3,a,0\n")
        return read_table(*args, **options)

    monkeypatch.setattr("estimator_inputs.csv_input.read_table", changed)
    with pytest.raises(InputError, match=r"its size was [\d,]+ bytes and is"):
        learn_schema(path)
