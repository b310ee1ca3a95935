"""The same rows make the same batches, in every kind of file."""

import datetime
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from estimator_core import export
from estimator_core.errors import InputError
from estimator_inputs import csv_input_fn, parquet_input_fn, tfrecord_input_fn
from plugins.inputs.tests.written import (
    WRITERS,
    input_of,
    some_rows,
    write_csv,
    write_examples,
    write_files,
    write_parquet,
)

KINDS = list(WRITERS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_bytes", [64, 700, 1 << 19])
def test_rows_come_back(tmp_path: Path, kind: str, block_bytes: int) -> None:
    rows = some_rows(101)
    source = input_of(kind, write_files(tmp_path, kind, rows, 3), 16, shuffle=False, block_bytes=block_bytes)
    batches = list(source())
    assert [len(labels) for _, labels in batches] == [16] * 6 + [5]
    for name, expected in rows.items():
        found = [labels if name == "label" else features[name] for features, labels in batches]
        joined = np.concatenate(found)
        assert joined.dtype == expected.dtype
        np.testing.assert_array_equal(joined, expected)


def real_data() -> dict[str, Any]:
    """The data about breast tumours that scikit-learn contains."""
    datasets = pytest.importorskip("sklearn.datasets")
    bunch = datasets.load_breast_cancer()
    names = [name.replace(" ", "_") for name in bunch.feature_names]
    columns: dict[str, Any] = {name: bunch.data[:, i].astype(np.float32) for i, name in enumerate(names)}
    kinds = np.array([b"malignant", b"benign", None], object)
    return {**columns, "diagnosis": kinds[bunch.target], "label": bunch.target.astype(np.int64)}


def test_real_data_is_the_same_in_csv_parquet_and_tfrecord(tmp_path: Path) -> None:
    rows = real_data()
    write_csv(tmp_path / "a.csv", rows)
    write_parquet(tmp_path / "a.parquet", rows, row_group_size=100)
    write_examples(tmp_path / "a.tfrecord", rows)
    spec = {name: export.FixedLenFeature((), "string" if v.dtype == object else v.dtype) for name, v in rows.items()}
    inputs = [
        csv_input_fn(tmp_path / "a.csv", 50, shuffle=False, label_name="label", block_bytes=5000),
        parquet_input_fn(tmp_path / "a.parquet", 50, shuffle=False, label_name="label"),
        tfrecord_input_fn(tmp_path / "a.tfrecord", 50, spec, shuffle=False, label_key="label", block_bytes=5000),
    ]
    found = [list(source()) for source in inputs]
    assert [len(batches) for batches in found] == [12, 12, 12]
    for one, two, three in zip(*found, strict=True):
        assert sorted(one[0]) == sorted(two[0]) == sorted(three[0])
        for name, values in one[0].items():
            np.testing.assert_array_equal(values, two[0][name], name)
            np.testing.assert_array_equal(values, three[0][name], name)
        np.testing.assert_array_equal(one[1], two[1])
        np.testing.assert_array_equal(one[1], three[1])


WRITTEN_BY_TENSORFLOW = Path(__file__).parent / "written_by_tensorflow"


@pytest.mark.parametrize(
    ("name", "compression"), [("wine.tfrecord", "auto"), ("wine.tfrecord.gz", "auto"), ("wine.zlib.tfrecord", "zlib")]
)
def test_a_file_written_by_tensorflow(name: str, compression: str) -> None:
    """`write.py` in its folder wrote the file with tf.io.TFRecordWriter."""
    wine = pytest.importorskip("sklearn.datasets").load_wine()
    spec = {
        "row": export.FixedLenFeature((), "int64"),
        "measures": export.FixedLenFeature((13,), "float32"),
        "name": export.FixedLenFeature((), "string"),
        "notes": export.VarLenFeature("string"),
        "odd": export.VarLenFeature("int64"),
        "absent": export.FixedLenFeature((2,), "int64", default_value=[7, -8]),
    }
    batches = list(tfrecord_input_fn(WRITTEN_BY_TENSORFLOW / name, 40, spec, shuffle=False, compression=compression)())
    found = {key: np.concatenate([batch[key] for batch in batches]) for key in ("row", "measures", "name", "absent")}
    np.testing.assert_array_equal(found["row"], np.arange(178))
    np.testing.assert_array_equal(found["measures"], wine.data.astype(np.float32))
    assert found["name"].tolist() == [wine.target_names[k].encode() for k in wine.target]
    assert found["absent"].tolist() == [[7, -8]] * 178
    rows = [(b["notes"][i], b["odd"][i]) for b in batches for i in range(len(b["row"]))]
    for number, (notes, odd) in enumerate(rows):
        assert [note for note in notes if note] == [b"note %d" % k for k in range(number % 3)]
        assert [value for value in odd.tolist() if value != -1] == [
            number * 10**12 * (-1) ** k * 2 for k in range(number % 2)
        ]


def test_the_recorded_file_is_what_tensorflow_wrote() -> None:
    digest = hashlib.sha256((WRITTEN_BY_TENSORFLOW / "wine.tfrecord").read_bytes()).hexdigest()
    assert digest == (WRITTEN_BY_TENSORFLOW / "wine.sha256").read_text().strip()


def test_large_whole_numbers_are_rounded_alike(tmp_path: Path) -> None:
    """Examples are populations and times in seconds.

    Arrow refuses whole numbers that float32 does not represent exactly.
    """
    numbers = [16_777_217, 1_700_000_001, 2**53, 3]
    pyarrow.parquet.write_table(pyarrow.table({"n": numbers}), tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("\n".join(["n", *map(str, numbers), ""]))
    types = {"n": "float32"}
    (of_csv,) = csv_input_fn(tmp_path / "rows.csv", 4, shuffle=False, column_types=types)()
    (of_parquet,) = parquet_input_fn(tmp_path / "rows.parquet", 4, shuffle=False, column_types=types)()
    assert of_csv["n"].tolist() == of_parquet["n"].tolist() == np.array(numbers, np.float32).tolist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_the_same_words_in_csv_and_parquet(tmp_path: Path, unit: str) -> None:
    """The unit of a Parquet file added zeros, so the words had other hashes."""
    of_day = [datetime.time(9, 30), datetime.time(23, 59, 59)]
    stamps = [datetime.datetime.fromisoformat(text) for text in ("2024-01-31 09:30:00", "2024-02-01 10:00:05")]
    clock = pyarrow.time32(unit) if unit in ("s", "ms") else pyarrow.time64(unit)
    table = pyarrow.table(
        {
            "clock": pyarrow.array([*of_day, None], clock),
            "stamp": pyarrow.array([*stamps, None], pyarrow.timestamp(unit)),
            "zoned": pyarrow.array([*stamps, None], pyarrow.timestamp(unit, "UTC")),
            "end": pyarrow.array([1, 2, 3]),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "times.parquet", coerce_timestamps=None)
    rows = [f"{time},{stamp},{stamp}Z,{at}" for at, (time, stamp) in enumerate(zip(of_day, stamps, strict=True), 1)]
    (tmp_path / "times.csv").write_text("\n".join(["clock,stamp,zoned,end", *rows, ",,,3", ""]))
    options: dict[str, Any] = {"batch_size": 3, "num_epochs": 1, "shuffle": False}
    (of_csv,) = csv_input_fn(str(tmp_path / "times.csv"), **options)()
    (of_parquet,) = parquet_input_fn(str(tmp_path / "times.parquet"), **options)()
    assert {name: array.tolist() for name, array in of_parquet.items()} == {
        name: array.tolist() for name, array in of_csv.items()
    }


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_a_time_with_a_zone_adds_no_zeros(tmp_path: Path, unit: str) -> None:
    stamps = [*map(datetime.datetime.fromisoformat, ("2024-01-31T09:30:00Z", "2024-07-01T10:00:00Z")), None]
    zones = ["Europe/Berlin", "+05:30", "-03:00"]
    table = {zone: pyarrow.array(stamps, pyarrow.timestamp(unit, zone)) for zone in zones}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "times.parquet")
    (batch,) = parquet_input_fn(str(tmp_path / "times.parquet"), batch_size=3, num_epochs=1, shuffle=False)()
    assert {zone: batch[zone].tolist() for zone in zones} == {
        "Europe/Berlin": [b"2024-01-31 10:30:00+0100", b"2024-07-01 12:00:00+0200", b""],
        "+05:30": [b"2024-01-31 15:00:00+0530", b"2024-07-01 15:30:00+0530", b""],
        "-03:00": [b"2024-01-31 06:30:00-0300", b"2024-07-01 07:00:00-0300", b""],
    }


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_in_lists_are_the_words_of_single_times(tmp_path: Path, unit: str) -> None:
    stamps = [*map(datetime.datetime.fromisoformat, ("2024-01-31T09:30:00Z", "2024-07-01T10:00:00Z")), None]
    clock = pyarrow.time32(unit) if unit in ("s", "ms") else pyarrow.time64(unit)
    kinds = {
        "clock": (clock, [datetime.time(9, 30), datetime.time(10, 0, 5), None]),
        "stamp": (pyarrow.timestamp(unit), [stamp and stamp.replace(tzinfo=None) for stamp in stamps]),
        "zoned": (pyarrow.timestamp(unit, "Europe/Berlin"), stamps),
        "date": (pyarrow.date32(), [stamp and stamp.date() for stamp in stamps]),
    }
    table: dict[str, Any] = {}
    for name, (kind, values) in kinds.items():
        table[name] = pyarrow.array(values, kind)
        table[f"{name}, list"] = pyarrow.array([values[:2], values[1:], None], pyarrow.list_(kind))
        table[f"{name}, large"] = pyarrow.array([values[:2], values[1:], None], pyarrow.large_list(kind))
        table[f"{name}, sized"] = pyarrow.array([values] * 3, pyarrow.list_(kind, 3))
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "times.parquet")
    (batch,) = parquet_input_fn(str(tmp_path / "times.parquet"), batch_size=3, num_epochs=1, shuffle=False)()
    for name in kinds:
        first, second, none = batch[name].tolist()
        assert none == b""
        expected = [[first, second], [second, b""], [b"", b""]]
        assert batch[f"{name}, list"].tolist() == batch[f"{name}, large"].tolist() == expected
        assert batch[f"{name}, sized"].tolist() == [[first, second, b""]] * 3


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_fraction_of_a_second_stays_in_the_words_of_a_time(tmp_path: Path, unit: str) -> None:
    """The fraction had three, six or nine digits, depending on the unit of the file."""
    of_day = [datetime.time(9, 30, 0, 500000), datetime.time(9, 30, 10)]
    stamps = [datetime.datetime.combine(datetime.date(2024, 1, 31), time) for time in of_day]
    table = {
        "clock": pyarrow.array(of_day, pyarrow.time32(unit) if unit == "ms" else pyarrow.time64(unit)),
        "stamp": pyarrow.array(stamps, pyarrow.timestamp(unit)),
        "zoned": pyarrow.array(stamps, pyarrow.timestamp(unit, "+05:30")),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "times.parquet")
    (batch,) = parquet_input_fn(str(tmp_path / "times.parquet"), batch_size=2, num_epochs=1, shuffle=False)()
    assert batch["clock"].tolist() == [str(time).encode() for time in of_day]
    assert batch["stamp"].tolist() == [str(stamp).encode() for stamp in stamps]
    assert batch["zoned"].tolist() == [b"2024-01-31 15:00:00.500000+0530", b"2024-01-31 15:00:10+0530"]


def test_nanoseconds_stay_in_the_words_of_a_time(tmp_path: Path) -> None:
    stamps = pyarrow.array([1, 1000, 10**9], pyarrow.timestamp("ns"))
    pyarrow.parquet.write_table(pyarrow.table({"stamp": stamps}), tmp_path / "times.parquet")
    (batch,) = parquet_input_fn(str(tmp_path / "times.parquet"), batch_size=3, num_epochs=1, shuffle=False)()
    assert [text.split(b":")[-1] for text in batch["stamp"].tolist()] == [b"00.000000001", b"00.000001", b"01"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_seconds_whatever_the_unit_of_the_file(tmp_path: Path, unit: str) -> None:
    spans = [datetime.timedelta(days=1, seconds=100), datetime.timedelta(0), -datetime.timedelta(seconds=30), None]
    parts = [] if unit == "s" else [datetime.timedelta(milliseconds=4500), -datetime.timedelta(milliseconds=1)]
    kind = pyarrow.duration(unit)
    table = {
        "span": pyarrow.array([*spans, *parts], kind),
        "list": pyarrow.array([[span] for span in (*spans, *parts)], pyarrow.list_(kind)),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "spans.parquet")
    (batch,) = parquet_input_fn(str(tmp_path / "spans.parquet"), batch_size=6, num_epochs=1, shuffle=False)()
    expected = [b"86500", b"0", b"-30", b"", *([b"4.5", b"-0.001"] if parts else [])]
    assert batch["span"].tolist() == batch["list"][:, 0].tolist() == expected


@pytest.mark.parametrize("kind", [pyarrow.timestamp, pyarrow.duration])
@pytest.mark.parametrize("listed", [False, True])
def test_times_as_integers_have_one_unit_in_all_files(tmp_path: Path, kind: Any, listed: bool) -> None:
    """The integers of a later file with another unit were a thousand times as large."""
    for number, unit in enumerate(["ms", "us"]):
        arrow = pyarrow.list_(kind(unit)) if listed else kind(unit)
        values = pyarrow.array([[5]] if listed else [5], arrow)
        pyarrow.parquet.write_table(pyarrow.table({"at": values}), tmp_path / f"{number}.parquet")
    options: dict[str, Any] = {"batch_size": 3, "shuffle": False, "column_types": {"at": "int64"}}
    (batch,) = parquet_input_fn(str(tmp_path / "0.parquet"), **options)()
    assert batch["at"].tolist() == ([[5]] if listed else [5])
    with pytest.raises(InputError, match=r"1\.parquet: column 'at' is of type .*\[us\].*\[ms\].* with one type\.$"):
        list(parquet_input_fn(f"{tmp_path}/*.parquet", **options)())
    text = parquet_input_fn(f"{tmp_path}/*.parquet", **(options | {"column_types": {"at": "string"}}))
    first, second = next(text())["at"].tolist()
    assert first != second


@pytest.mark.parametrize("first", [pyarrow.null(), pyarrow.int64()])
def test_times_as_integers_have_one_unit_if_the_first_file_has_no_times(tmp_path: Path, first: Any) -> None:
    for number, kind in enumerate([first, pyarrow.timestamp("ms"), pyarrow.timestamp("us")]):
        values = pyarrow.array([None if pyarrow.types.is_null(kind) else 5], kind)
        pyarrow.parquet.write_table(pyarrow.table({"at": values}), tmp_path / f"{number}.parquet")
    options: dict[str, Any] = {"column_types": {"at": "int64"}, "column_defaults": {"at": 0}}
    told = r"2.parquet: .*\[us\].*\[ms\]" if pyarrow.types.is_null(first) else r"1.parquet: .*\[ms\].*int64"
    with pytest.raises(InputError, match=told):
        list(parquet_input_fn(f"{tmp_path}/*.parquet", 3, shuffle=False, **options)())


@pytest.mark.parametrize("other", [pyarrow.timestamp("us", "Europe/Paris"), pyarrow.null()])
def test_times_as_integers_may_have_another_zone_or_be_empty_in_later_files(tmp_path: Path, other: Any) -> None:
    values = [None if pyarrow.types.is_null(other) else 5]
    for number, kind in enumerate([pyarrow.timestamp("us", "UTC"), other]):
        table = pyarrow.table({"at": pyarrow.array([5] if number == 0 else values, kind)})
        pyarrow.parquet.write_table(table, tmp_path / f"{number}.parquet")
    options: dict[str, Any] = {"column_types": {"at": "int64"}, "column_defaults": {"at": 0}}
    (batch,) = parquet_input_fn(f"{tmp_path}/*.parquet", batch_size=2, shuffle=False, **options)()
    assert batch["at"].tolist() == [5, values[0] or 0]


def test_times_of_day_of_another_unit_are_read_in_later_files(tmp_path: Path) -> None:
    for number, kind in enumerate([pyarrow.time32("ms"), pyarrow.time64("us")]):
        table = pyarrow.table({"clock": pyarrow.array([datetime.time(9, 30)], kind)})
        pyarrow.parquet.write_table(table, tmp_path / f"{number}.parquet")
    (batch,) = parquet_input_fn(f"{tmp_path}/*.parquet", batch_size=3, shuffle=False)()
    assert batch["clock"].tolist() == [b"09:30:00", b"09:30:00"]
