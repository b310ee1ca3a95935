"""Tests of ArrayRecord files, which grain reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_core.cli import main
from estimator_core.errors import ArgumentError, InputError, PluginError
from estimator_core.testing import InputSuite
from estimator_inputs import array_record_input_fn
from estimator_inputs.array_record import blocks_of_records, some_records
from estimator_inputs.reading.unchanged import Unchanged
from estimator_inputs.tfrecord.spec import feature_specs
from plugins.inputs.tests.written import SPEC, example, ids, parts_of, row_dicts, some_rows

pytestmark = pytest.mark.libraries  # grain
array_record = pytest.importorskip("array_record.python.array_record_module")
pytest.importorskip("grain")


def write(path: Path, records: list[bytes]) -> Path:
    writer = array_record.ArrayRecordWriter(str(path), "group_size:1")
    for record in records:
        writer.write(record)
    writer.close()
    return path


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for number, part in enumerate(parts_of(some_rows(100), 3)):
        write(tmp_path / f"part-{number}.array_record", [example(row) for row in row_dicts(part)])
    return f"{tmp_path}/*.array_record"


class TestArrayRecord(InputSuite):
    @pytest.fixture(autouse=True)
    def files(self, pattern: str) -> None:
        self.pattern = pattern

    def make(self) -> Any:
        return array_record_input_fn(self.pattern, 16, SPEC, shuffle=True, seed=4, label_key="label")


def test_rows_and_epochs(pattern: str) -> None:
    def source(**options: Any) -> Any:
        return array_record_input_fn(pattern, 16, SPEC, label_key="label", **options)

    assert ids(list(source(shuffle=False)())) == list(range(100))
    shuffled = ids(list(source(shuffle=True, num_epochs=2)()))
    assert sorted(shuffled[:100]) == sorted(shuffled[100:]) == list(range(100))
    assert shuffled[:100] != shuffled[100:]
    assert len(list(source(shuffle=True, drop_remainder=True)())) == 6
    words = np.concatenate([features["word"] for features, _ in source(shuffle=False)()])
    assert words.tolist() == some_rows(100)["word"].tolist()


def test_a_file_that_is_written_to_while_it_is_read_is_refused(pattern: str) -> None:
    path = Path(pattern).parent / "part-1.array_record"
    os.utime(path, ns=(1, 1))  # the clock of the file system may be too coarse for this test
    batches = array_record_input_fn(pattern, 16, SPEC, shuffle=False)()
    blocks = blocks_of_records(path, feature_specs(SPEC), 20)
    first, (numbers, _, _) = next(batches), next(blocks)
    assert (len(first["id"]), len(numbers)) == (16, 20)
    write(path, [example(row) for row in row_dicts(some_rows(33, seed=1))])
    for reading in (batches, blocks):
        with pytest.raises(InputError, match=r"part-1\.array_record was written to while it was read"):
            list(reading)


@pytest.mark.parametrize("rows", [10, 60])
def test_a_file_that_is_replaced_before_it_is_opened_is_refused(tmp_path: Path, pattern: str, rows: int) -> None:
    """Rows of a longer file were left out in every epoch, and a shorter one was reported as damaged."""
    batches = array_record_input_fn(pattern, 16, SPEC, shuffle=False, num_epochs=2, on_error="skip")()
    next(batches)
    new = write(tmp_path / "new", [example(row) for row in row_dicts(some_rows(rows, seed=1))])
    new.replace(tmp_path / "part-2.array_record")
    with pytest.raises(InputError, match=r"part-2\.array_record was replaced after its rows were counted"):
        list(batches)


def test_a_file_that_is_replaced_while_it_is_open_stays_the_same(tmp_path: Path, pattern: str) -> None:
    batches = array_record_input_fn(pattern, 50, SPEC, shuffle=False, num_epochs=2)()
    first = [next(batches), next(batches)]
    new = write(tmp_path / "new", [example(row) for row in row_dicts(some_rows(60, seed=1))])
    new.replace(tmp_path / "part-2.array_record")
    found = np.concatenate([batch["id"] for batch in [*first, *batches]])
    assert found.reshape(-1).tolist() == [*range(100), *range(100)]


def test_a_batch_looks_only_at_the_files_of_its_records(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of a thousand files asked for a thousand versions."""
    batches = array_record_input_fn(pattern, 34, SPEC, shuffle=False)()
    looked: list[str] = []
    monkeypatch.setattr(Unchanged, "check", lambda file, **_: looked.append(file._path.name))
    parts = []
    for batch in batches:
        parts.append((len(batch["id"]), [*looked]))
        looked.clear()
    first, second, third = (f"part-{number}.array_record" for number in range(3))
    assert parts == [(34, [first, second]), (34, [second, third]), (32, [third])]


def test_a_bad_record_is_named_or_skipped(pattern: str, tmp_path: Path) -> None:
    rows = row_dicts(some_rows(10))
    del rows[3]["count"]
    path = write(tmp_path / "zz.array_record", [example(row) for row in rows])
    with pytest.raises(InputError, match=r"zz\.array_record, record 3: feature 'count' is missing"):
        list(array_record_input_fn(pattern, 16, SPEC, shuffle=False)())
    iterator = array_record_input_fn(path, 2, SPEC, shuffle=False, on_error="skip")()
    assert [len(batch["id"]) for batch in iterator] == [2, 1, 2, 2, 2]
    assert iterator.bad_rows == 1


def test_a_damaged_record_is_named_or_skipped(tmp_path: Path) -> None:
    rows = row_dicts(some_rows(10))
    rows[4]["word"] = b"nowhere else"
    good = write(tmp_path / "good.array_record", [example(row) for row in rows])
    content = bytearray(good.read_bytes())
    content[content.index(b"nowhere else")] ^= 0xFF
    bad = tmp_path / "bad.array_record"
    bad.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.array_record, record 4: it is damaged: "):
        list(array_record_input_fn([good, str(bad)], 16, SPEC, shuffle=False)())
    iterator = array_record_input_fn(str(bad), 5, SPEC, shuffle=False, on_error="skip")()
    assert [features["id"].tolist() for features in iterator] == [[0, 1, 2, 3], [5, 6, 7, 8, 9]]
    assert iterator.bad_rows == 1
    _, columns, (fault,) = next(blocks_of_records(bad, feature_specs(SPEC, None)))
    assert len(columns["id"]) == 9
    assert fault.where == f"{bad}, record 4"
    assert len(some_records(bad, 6)) == 5


def test_a_file_of_damaged_records_alone_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = row_dicts(some_rows(3))
    for row in rows:
        row["word"] = b"nowhere else"
    content = Path(write(tmp_path / "good.array_record", [example(row) for row in rows])).read_bytes()
    bad = tmp_path / "bad.array_record"
    bad.write_bytes(content.replace(b"nowhere else", b"NOWHERE ELSE"))
    assert main(["inputs", "inspect", str(bad)]) != 0
    told = capsys.readouterr().err
    assert f"{bad}: the first 3 records cannot be read. Record 0: it is damaged: " in told
    assert "has no records" not in told


def test_a_file_without_records_is_told(tmp_path: Path) -> None:
    empty = Path(write(tmp_path / "empty.array_record", []))
    assert some_records(empty, 6) == []
    assert list(blocks_of_records(empty, feature_specs(SPEC, None))) == []
    with pytest.raises(InputError, match=r"No records in 1 files, beginning with .*empty\.array_record"):
        next(array_record_input_fn(str(empty), 5, SPEC, shuffle=False)())


@pytest.mark.parametrize("content", [b"", b"id,count\n", bytes(1 << 17)])
def test_a_file_that_is_none_is_named(pattern: str, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "zz.array_record"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"zz\.array_record is not a complete ArrayRecord file: .*\. Write it again"):
        next(array_record_input_fn(pattern, 16, SPEC, shuffle=True)())


def test_arguments_that_cannot_be(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="label_key 'z' is not one of the features"):
        array_record_input_fn(pattern, 16, SPEC, shuffle=False, label_key="z")
    monkeypatch.setitem(__import__("sys").modules, "grain", None)
    with pytest.raises(PluginError, match=r"pip install 'estimator-inputs\[array-record\]'"):
        array_record_input_fn(pattern, 16, SPEC, shuffle=False)
