"""Values keep their meaning: large whole numbers, types that change among files, padding, missing words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_core.inputs import numpy_input_fn, open_input
from estimator_inputs import csv_input_fn, jsonl_input_fn, pandas_input_fn, parquet_input_fn, table_input_fn
from estimator_inputs.table import rounding

LARGE = 2**24 + 1
WIDE = [12345678901234567890, 12345678901234567891]


@pytest.fixture
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def of_table(table: Any, **options: Any) -> Any:
    return next(table_input_fn(table, 8, shuffle=False, **options)())["x"]


def of_parquet(folder: Path, *columns: Any, **options: Any) -> list[Any]:
    for number, column in enumerate(columns):
        parquet.write_table(pa.table({"x": column}), folder / f"{number}.parquet")
    batches = list(parquet_input_fn(f"{folder}/*.parquet", 8, shuffle=False, **options)())
    return [row for batch in batches for row in batch["x"].tolist()]


def of_text(folder: Path, kind: str, numbers: list[str], **options: Any) -> Any:
    path = folder / f"rows.{kind}"
    lines = ["x", *numbers] if kind == "csv" else [f'{{"x": {number}}}' for number in numbers]
    path.write_text("\n".join([*lines, ""]))
    return (csv_input_fn if kind == "csv" else jsonl_input_fn)(path, 8, shuffle=False, **options)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_whole_numbers_beyond_int64_are_no_floats(tmp_path: Path, kind: str) -> None:
    source = of_text(tmp_path, kind, [str(number) for number in WIDE])
    assert next(source())["x"].tolist() == WIDE
    with pytest.raises(InputError, match="feature 'x' holds 12345678901234567890, outside the range of uint32"):
        next(open_input(source, mode="train"))
    for numbers in (["1" * 30, "5"], ["-" + "1" * 20, "5"]):
        with pytest.raises(InputError, match=rf"line \d: column 'x': '{numbers[0]}' is not of type u?int64"):
            list(of_text(tmp_path, kind, numbers)())
    for numbers in (["1e25", "2.5"], ["12345678901234567890", "1.5"], ["1e25", "1e30"]):
        assert next(of_text(tmp_path, kind, numbers)())["x"].tolist() == np.array(numbers, np.float32).tolist()
    rounds = of_text(tmp_path, kind, [str(number) for number in WIDE], column_types={"x": "float32"})
    assert next(rounds())["x"].dtype == np.float32


def test_the_cure_for_numbers_beyond_uint64(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not of type uint64; read the column as 'string' and hash it"):
        list(of_text(tmp_path, "csv", ["1" * 30])())
    assert next(of_text(tmp_path, "csv", ["1" * 30], column_types={"x": "string"})())["x"].tolist() == [b"1" * 30]
    with pytest.raises(InputError, match=r"'\[12345678901234567890\]' is not of type list of int64"):
        list(of_text(tmp_path, "jsonl", ["[12345678901234567890]"])())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, LARGE, None]),
        pa.array([1, 2**53 + 1, None], pa.uint64()),
        pa.array([1, -LARGE, None]).dictionary_encode(),
        pa.array([[1], [LARGE, None], [2]]),
        pa.array([[1, 2], [LARGE, 2], None], pa.list_(pa.int64(), 2)),
        pa.array([Decimal(1), Decimal(12345678901234567)], pa.decimal128(20, 0)),
        pa.array([[Decimal(1)], [Decimal(10**45 + 1)]], pa.list_(pa.decimal256(60, 0))),
    ],
)
def test_whole_numbers_of_tables_that_float32_rounds(column: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"Column 'x' becomes float32 \(it .*\), which cannot represent -?\d+ of row 1"
    ):
        of_table(pa.table({"x": column}))


def test_whole_numbers_of_tables_that_float32_holds() -> None:
    column = pa.array([2**24, 2**40, None])
    np.testing.assert_array_equal(of_table(pa.table({"x": column})), [2.0**24, 2.0**40, np.nan])
    assert of_table(pa.table({"x": pa.array([Decimal(7), Decimal(2**30)], pa.decimal128(20, 0))})).tolist() == [
        7,
        2**30,
    ]
    assert of_table(pa.table({"x": column.cast(pa.float64(), safe=False)}))[0] == 2**24


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("text", ["1e39", "-1e39", "1" + "0" * 50])
def test_finite_numbers_of_texts_do_not_become_infinite(tmp_path: Path, kind: str, text: str) -> None:
    for infinite in ([], ["Infinity", "-Infinity"]):
        source = of_text(tmp_path, kind, ["1.5", *infinite, text, "2.5"], column_types={"x": "float32"})
        line = len(infinite) + (3 if kind == "csv" else 2)
        shown = re.escape(text if kind == "csv" or "e" not in text else text.replace("e", "e+"))
        with pytest.raises(
            InputError, match=rf"rows\.{kind}, line {line}: column 'x': '{shown}' is infinite as float32"
        ):
            list(source())
        skipped = of_text(
            tmp_path, kind, ["1.5", *infinite, text, "2.5"], on_error="skip", column_types={"x": "float32"}
        )
        expected = [1.5, *map(float, infinite), 2.5]
        assert [row for batch in skipped() for row in batch["x"].tolist()] == expected
    wide = of_text(tmp_path, kind, ["1.5", "1e39"], column_types={"x": "float64"})
    assert next(wide())["x"].tolist() == [1.5, 1e39]


def test_floats_that_are_infinite_in_a_file_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "items_of", None)
    infinite = np.array([np.inf, 1.5, -np.inf], np.float32)
    assert list(rounding.infinite_rows(pa.array([np.inf, 1.5, -np.inf]), infinite)) == []
    monkeypatch.undo()
    assert list(rounding.infinite_rows(pa.array([np.inf, None, -1e39]), infinite)) == [(2, -1e39)]


def test_numbers_that_are_infinite_as_float16(tmp_path: Path) -> None:
    for kind in ("csv", "jsonl"):
        with pytest.raises(InputError, match=r"column 'x': 7\d*\.0 is infinite as float16"):
            list(of_text(tmp_path, kind, ["1.5", "70000"], column_types={"x": "float16"})())


def test_a_line_of_several_objects_of_json_is_a_bad_row_where_one_is_infinite(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x": 0.5}\n{"x": 1.5}{"x": 1e39}\n{"x": 2.5}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2: .*Extra data"):
        list(jsonl_input_fn(str(path), 4, shuffle=False, column_types={"x": "float32"})())
    source = jsonl_input_fn(str(path), 4, shuffle=False, on_error="skip", column_types={"x": "float32"})
    assert next(source())["x"].tolist() == [0.5, 2.5]
    path.write_text('{"x": 1.5}{"x": 1e39}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl, line 1: .*Extra data"):
        list(jsonl_input_fn(str(path), 4, shuffle=False, column_types={"x": "float32"})())


def test_finite_numbers_of_lists_of_json_do_not_become_infinite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 3: column 'x': '\[2\.5, 1e\+39\]' is infinite as float32"):
        list(of_text(tmp_path, "jsonl", ["[1.5]", "[Infinity, 1.0]", "[2.5, 1e39]"])())
    found = next(of_text(tmp_path, "jsonl", ["[1.5]", "[Infinity, 1.0]", "[]"])())["x"]
    assert found.tolist() == [[1.5, 0], [np.inf, 1], [0, 0]]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (1.5, 1e39),
        ([1.5], [1.5, -1e39]),
        (Decimal("1.5"), Decimal("1e39") + Decimal("0.5")),
        ("1.5", "1e39"),
    ],
)
def test_finite_numbers_of_columns_do_not_become_infinite(tmp_path: Path, good: Any, bad: Any) -> None:
    columns = [pa.array([good, bad]), pa.array([good, good])]
    options = {"column_types": {"x": "float32"}} if isinstance(good, str) else {}
    with pytest.raises(InputError, match=r"0\.parquet, row 1: column 'x': .*1.* is infinite as float32"):
        of_parquet(tmp_path, *columns, **options)
    assert len(of_parquet(tmp_path, *columns, on_error="skip", **options)) == 3
    if not isinstance(good, str):
        with pytest.raises(ArgumentError, match=r"Column 'x' becomes float32, in which .*1.* of row 1 is infinite"):
            of_table(pa.table({"x": columns[0]}))
    infinite = pa.array([np.inf, -np.inf])
    assert of_table(pa.table({"x": infinite})).tolist() == [np.inf, -np.inf]
    assert of_parquet(tmp_path, infinite, infinite) == [np.inf, -np.inf] * 2


def test_finite_numbers_of_frames_do_not_become_infinite() -> None:
    source = pandas_input_fn(pd.DataFrame({"x": [1.5, np.inf, np.nan, 1e39]}), None, 2, shuffle=True, seed=1)
    with pytest.raises(InputError, match=r"feature 'x' holds 1e\+39 in row 3, which is infinite as float32"):
        list(open_input(source, mode="train"))


def test_decimals_of_frames_are_those_of_tables(tmp_path: Path) -> None:
    for numbers, arrow in (
        ([Decimal("0.1"), None, Decimal("2.25")], pa.decimal128(38, 2)),
        ([Decimal(7), Decimal(2**30)], pa.decimal128(20, 0)),
    ):
        expected = np.array([np.nan if number is None else float(number) for number in numbers], np.float32)
        series = pd.Series(numbers, dtype=pd.ArrowDtype(arrow))
        source = pandas_input_fn(pd.DataFrame({"x": series}), series.fillna(Decimal(0)), 4, shuffle=False)
        batch = next(open_input(source, mode="train"))
        np.testing.assert_array_equal(batch.features["x"], expected)
        np.testing.assert_array_equal(batch.labels, np.nan_to_num(expected))
        np.testing.assert_array_equal(of_table(pa.table({"x": pa.array(numbers, arrow)})), expected)
        read = of_parquet(tmp_path, pa.array(numbers, arrow), column_defaults={"x": float("nan")})
        np.testing.assert_array_equal(np.array(read, np.float32), expected)
    large = pd.Series([Decimal(1), Decimal(LARGE)], index=["a", "b"], dtype=pd.ArrowDtype(pa.decimal128(20, 0)))
    with pytest.raises(
        ArgumentError, match=rf"x\['x'\] holds decimals, .* cannot represent {LARGE} of row 'b' exactly: .*int64"
    ):
        pandas_input_fn(pd.DataFrame({"x": large}), None, 4, shuffle=False)
    assert next(pandas_input_fn(pd.DataFrame({"x": large.astype("int64")}), None, 4, shuffle=False)())["x"][1] == LARGE
    for arrow, value in ((pa.list_(pa.decimal128(5, 2)), [Decimal("1.5")]), (pa.struct({"decimal": pa.int8()}), {})):
        holding = pd.DataFrame({"x": pd.Series([value, value], dtype=pd.ArrowDtype(arrow))})
        assert next(pandas_input_fn(holding, None, 2, shuffle=False)())["x"].dtype == object


def test_tables_keep_the_width_of_their_numbers_with_x64(x64: None) -> None:
    for arrow in (pa.int64(), pa.int32(), pa.decimal128(20, 0)):
        column = pa.array([Decimal(LARGE) if "decimal" in str(arrow) else LARGE, None], arrow)
        np.testing.assert_array_equal(of_table(pa.table({"x": column})), [float(LARGE), np.nan])
    assert of_table(pa.table({"x": pa.array([0.1, 0.2])})).tolist() == [0.1, 0.2]
    assert of_table(pa.table({"x": pa.array([[0.1], [0.2, 0.3]])})).tolist() == [[0.1, 0.0], [0.2, 0.3]]
    assert of_table(pa.table({"x": pa.array([0.1], pa.float32())})).dtype == np.float32
    assert of_table(pa.table({"x": pa.array([1, None], pa.int8())})).dtype == np.float32
    with pytest.raises(
        ArgumentError, match=r"becomes float64 \(it has missing values \(NaN\)\), which cannot represent"
    ):
        of_table(pa.table({"x": pa.array([2**53 + 1, None])}))


def test_decimals_and_later_whole_numbers_of_parquet(tmp_path: Path) -> None:
    large = pa.array([Decimal(3), Decimal(12345678901234567)], pa.decimal128(20, 0))
    with pytest.raises(
        InputError, match=r"0.parquet, row 1: column 'x': float32 cannot represent 12345678901234567 exact"
    ):
        of_parquet(tmp_path, large)
    assert of_parquet(tmp_path, large, on_error="skip") == [3]
    assert of_parquet(tmp_path, large, column_types={"x": "float32"}) == [3, float(np.float32(12345678901234567))]
    with pytest.raises(InputError, match=r"1.parquet, row 0: column 'x': float32 cannot represent 16777217 exactly"):
        of_parquet(tmp_path, pa.array([1.5]), pa.array([LARGE]))
    assert of_parquet(tmp_path, pa.array([1.5]), pa.array([3])) == [1.5, 3]


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, LARGE, None], dtype="Int64"),
        pd.Series([1, 2**53 + 1, None], dtype="UInt64"),
        pd.Series([1, LARGE, None], dtype="int64[pyarrow]"),
        pd.Series(pd.Categorical([1, LARGE, None], categories=[1, LARGE])),
    ],
)
def test_whole_numbers_of_frames_that_floats_round(series: pd.Series) -> None:
    x = pd.DataFrame({"x": series})
    with pytest.raises(
        ArgumentError, match=r"x\['x'\] has missing values .* float32, which cannot represent \d+ of row 1 exac"
    ):
        pandas_input_fn(x, shuffle=False)
    with pytest.raises(ArgumentError, match="y has missing values"):
        pandas_input_fn(pd.DataFrame({"a": [1, 2, 3]}), series, shuffle=False)
    held = pandas_input_fn(x.assign(x=series.astype("float64")), shuffle=False)
    assert next(held())["x"].tolist()[0] == 1


@pytest.mark.parametrize("input_of", [lambda x: lambda: [{"x": x}], lambda x: numpy_input_fn({"x": x}, shuffle=False)])
@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, -LARGE, None], dtype="Int64"),
        pd.Series([1, LARGE, None], dtype="int64[pyarrow]"),
        pl.Series([1, LARGE, None]),
        pa.array([1, 2**53 + 1, None]),
        pa.chunked_array([[1], [LARGE, None]]),
    ],
)
def test_whole_numbers_of_columns_in_batches_that_floats_round(column: Any, input_of: Any) -> None:
    with pytest.raises(InputError, match=r"'x'\]? has missing values .* float32, which cannot represent -?\d+ exactly"):
        next(open_input(input_of(column), mode="train"))
    held = pd.Series([1, 2**25, None], dtype="Int64")
    assert next(open_input(input_of(held), mode="train")).features["x"].tolist()[:2] == [1, 2**25]


def of_one_size(row: list[int]) -> Any:
    return pa.array([row], pa.list_(pa.int32(), len(row)))


DRIFTS: dict[str, tuple[Any, Any]] = {
    "bool, int64": ([True], [7, 0]),
    "int64, timestamp": ([1, 2], pa.array([5], pa.timestamp("us"))),
    "int64, bool": ([1, 2], [True]),
    "int64, string": ([1], ["3"]),
    "string, int64": (["a"], [3]),
    "string, timestamp": (["a"], pa.array([5], pa.timestamp("us"))),
    "list, number": ([[1]], [1]),
    "lists of 2, lists of 3": (of_one_size([1, 2]), of_one_size([1, 2, 3])),
    "lists of 2, lists": (of_one_size([1, 2]), [[1, 2]]),
}  # fmt: skip


@pytest.mark.parametrize("case", list(DRIFTS))
def test_a_later_parquet_file_of_another_type_is_refused(tmp_path: Path, case: str) -> None:
    first, other = (pa.array(column) for column in DRIFTS[case])
    with pytest.raises(InputError) as raised:
        of_parquet(tmp_path, first, other, on_error="skip")
    named = [f"{tmp_path}/1.parquet: column 'x' is of type {other.type}", f"{first.type} in {tmp_path}/0.parquet"]
    assert all(one.replace("item: ", "element: ") in str(raised.value) for one in named)


def test_later_parquet_files_may_be_wider_or_empty_and_a_named_type_casts(tmp_path: Path) -> None:
    assert of_parquet(tmp_path, pa.array([1], pa.int32()), pa.array([2]), pa.array([3.0])) == [1, 2, 3]
    assert of_parquet(tmp_path, pa.array(["a"]), pa.nulls(1), pa.array(["b"]).dictionary_encode()) == [b"a", b"", b"b"]
    assert of_parquet(tmp_path, pa.array([1]), pa.array(["2"]), pa.array([3]), column_types={"x": "int64"}) == [1, 2, 3]


@pytest.mark.parametrize(
    ("column", "default"), [([3, None], 7), (["a", None], "z"), ([[1], [2, 3]], None), ([True, None], False)]
)
def test_a_null_column_of_the_first_parquet_file_has_the_type_of_a_later_one(
    tmp_path: Path, column: list[Any], default: Any
) -> None:
    """The type depended on the order of the files, and a null first file was refused."""
    values = pa.array(column)
    options: dict[str, Any] = {"column_defaults": {"x": default}}
    found = of_parquet(tmp_path, pa.nulls(2), values, **options)
    assert found[2:] == of_parquet(tmp_path, values, pa.nulls(2), **options)[:2]
    with pytest.raises(InputError, match=r"2.parquet: column 'x' is of type duration.s., but of type .*1.parquet"):
        of_parquet(tmp_path, pa.nulls(1), values, pa.array([5], pa.duration("s")), on_error="skip")


def test_lists_of_unsigned_numbers_are_filled_up_with_minus_one(tmp_path: Path) -> None:
    for arrow in (pa.uint8(), pa.uint32(), pa.uint64()):
        column = pa.array([[5, 0], [3]], pa.list_(arrow))
        assert of_table(pa.table({"x": column})).tolist() == [[5, 0], [3, -1]]
        assert of_parquet(tmp_path, column) == [[5, 0], [3, -1]]
    assert of_table(pa.table({"x": pa.array([[5, 0]], pa.list_(pa.uint8(), 2))})).dtype == np.uint8
    with pytest.raises(ArgumentError, match=r"Column 'x' holds .* and cannot be read as list of int64"):
        of_table(pa.table({"x": pa.array([[2**63]], pa.list_(pa.uint64()))}))
    with pytest.raises(ArgumentError, match="'x'] is uint8: short lists are padded with -1, which it cannot hold"):
        of_parquet(tmp_path, pa.array([[5, 0], [3]]), column_types={"x": "uint8"})


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([[1.5, None], [2.5], None]), [[1.5, np.nan], [2.5, 0], [np.nan, np.nan]]),
        (pa.array([[1, None], [2], None]), [[1, np.nan], [2, -1], [np.nan, np.nan]]),
        (pa.array([[1.5, None], None, [2, 3]], pa.list_(pa.float64(), 2)), [[1.5, np.nan], [np.nan, np.nan], [2, 3]]),
        (pa.array([[9, 9], [1, 2], None], pa.list_(pa.int64(), 2)).slice(1), [[1, 2], [np.nan, np.nan]]),
    ],
)
def test_missing_numbers_of_lists_are_nan(column: Any, expected: list[list[float]]) -> None:
    np.testing.assert_array_equal(of_table(pa.table({"x": column})), expected)


def test_missing_numbers_in_lists_of_one_size_in_parquet(tmp_path: Path) -> None:
    column = pa.array([[1, 2, 3], [4, None, 6]], pa.list_(pa.int64(), 3))
    with pytest.raises(InputError, match="row 1: column 'x': no value, and no default"):
        of_parquet(tmp_path, column)
    assert of_parquet(tmp_path, column, column_defaults={"x": -7}) == [[1, 2, 3], [4, -7, 6]]


WORDS = [[b"a", b""], [b"b", b""], [b"", b""]]


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (pl.Series([["a", None], ["b"], None]), WORDS),
        (pl.Series([["a", ""], ["b"], []], dtype=pl.List(pl.Categorical)), WORDS),
        (pl.Series([["a", ""], ["b", ""], None], dtype=pl.Array(pl.String, 2)), WORDS),
        (pl.Series([[b"\xff", b"a"], [b"b"]]), [[b"\xff", b"a"], [b"b", b""]]),
        (pl.Series([b"\xff", None]), [b"\xff", b""]),
        (pl.Series([[[1, 2], [3, 4]]] * 2, dtype=pl.Array(pl.Int32, (2, 2))), [[[1, 2], [3, 4]]] * 2),
    ],
)
def test_columns_of_polars(series: pl.Series, expected: list[Any]) -> None:
    frame = pl.DataFrame({"x": series})
    assert of_table(frame).tolist() == expected
    assert of_table(pl.concat([frame, frame])[1:]).tolist() == [*expected, *expected][1:]


def test_tensors_keep_their_shape() -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for tensors in (values, values.transpose(0, 2, 1)):
        column = pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)
        np.testing.assert_array_equal(of_table(pa.table({"x": column})), column.to_numpy_ndarray())


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (pl.Series([[[1, 2], [3]]]), "Column 'x' holds large_list<item: large_list<item: int64>>: leave it out"),
        (pl.Series([[[1, 2]]], dtype=pl.List(pl.Array(pl.Int8, 2))), "Column 'x' holds large_list<.*: leave it out"),
        (pl.Series([[[1, 2]]], dtype=pl.Array(pl.List(pl.Int8), 1)), "Column 'x' holds fixed_size_list<.*: leave it"),
        (pl.Series([1], dtype=pl.Int128), "Column 'x' cannot be converted to Arrow: .* Cast it, or drop it"),
    ],
)
def test_columns_of_polars_that_are_refused(series: pl.Series, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        of_table(pl.DataFrame({"a": [1], "x": series}))


def test_missing_words_of_frames_are_none() -> None:
    words = pd.Series(["a", None, "b"])
    for dtype in ("string", "string[pyarrow]", pd.ArrowDtype(pa.string())):
        for series in (words.astype(dtype), words.astype(dtype).astype("category"), words.astype(dtype).astype(object)):
            features = next(pandas_input_fn(pd.DataFrame({"x": series}), shuffle=False)())
            assert features["x"].tolist() == ["a", None, "b"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_float16_is_read_from_text(tmp_path: Path, kind: str) -> None:
    values = next(of_text(tmp_path, kind, ["1.5", "Infinity"], column_types={"x": "float16"})())["x"]
    assert (values.dtype, values.tolist()) == (np.float16, [1.5, np.inf])
    with pytest.raises(ArgumentTypeError, match=r"longdouble|float128"):
        of_text(tmp_path, kind, ["1.5"], column_types={"x": np.longdouble})


def test_indexes_with_a_missing_value_are_equal_to_themselves() -> None:
    x = pd.DataFrame({"x": [1.0, 2.0]}, index=[1.0, np.nan])
    y = pd.Series([0, 1], index=[1.0, np.nan])
    assert next(pandas_input_fn(x, y, shuffle=False)())[1].tolist() == [0, 1]
    with pytest.raises(ArgumentError, match="Index for x and y are mismatched"):
        pandas_input_fn(x, y.set_axis([np.nan, 1.0]), shuffle=False)


def test_lists_of_lists_beside_the_columns_of_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "m": [[1.5, 2.5], [3.0]]}\n{"a": 2, "m": [[1e300]]}\n')
    (batch,) = jsonl_input_fn(str(path), 2, shuffle=False, select_columns=["a"])()
    assert batch["a"].tolist() == [1, 2]


def test_lists_of_one_size_have_no_empty_column_later(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"x": pa.array([[1, 2]], pa.list_(pa.int64(), 2))}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"x": pa.nulls(1)}), tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2.parquet: column 'x' is of type null, .*Write the files with one type\.$"):
        list(parquet_input_fn(f"{tmp_path}/*.parquet", 1, shuffle=False)())
