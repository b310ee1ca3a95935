"""Tests of statistics in one pass: exact ones equal numpy's, and sketched ones are within the stated error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_core.inputs import numpy_input_fn
from estimator_inputs.statistics import rows, sources
from estimator_inputs.statistics.cells import cells_of
from estimator_inputs.statistics.column import ColumnGatherer
from estimator_inputs.statistics.counts import RELATIVE_ERROR
from estimator_inputs.statistics.files import rows_of_files
from estimator_inputs.statistics.gather import gather, gathered
from plugins.inputs.tests.written import WRITERS, example, some_rows, write_csv, write_files


def titanic_like(n: int = 900) -> pd.DataFrame:
    """A table with empty cells in two columns, one of which is text."""
    generator = np.random.default_rng(3)
    age = pd.Series(np.round(generator.uniform(0.4, 80, n), 2)).mask(generator.random(n) < 0.2)
    return pd.DataFrame(
        {
            "id": np.arange(1, n + 1),
            "age": age,
            "port": pd.Series(generator.choice(["C", "Q", "S"], n)).mask(generator.random(n) < 0.01),
            "fare": np.round(generator.exponential(30, n), 4),
            "siblings": generator.integers(0, 9, n),
        }
    )


def compare_with_pandas(statistics: Any, frame: pd.DataFrame) -> None:
    assert (statistics.rows, statistics.bad_rows, statistics.all_rows) == (len(frame), 0, True)
    assert set(statistics.columns) == set(frame.columns)
    for name, column in frame.items():
        found = statistics.columns[name]
        assert found.missing == int(column.isna().sum())
        assert found.values == int(column.notna().sum())
        assert (found.different, found.error) == (column.nunique(), 0.0)
        if column.dtype.kind in "if":
            assert (found.minimum, found.maximum) == (column.min(), column.max())
            assert found.mean == pytest.approx(column.mean(), rel=1e-12)
            assert found.deviation == pytest.approx(column.std(ddof=0), rel=1e-12)
            assert found.median == pytest.approx(column.median(), rel=1e-12)
            levels = np.linspace(0, 1, 11)
            np.testing.assert_allclose(found.numbers.quantiles(levels.tolist()), column.quantile(levels), rtol=1e-12)
        else:
            assert dict(found.words) == column.value_counts().to_dict()


def forms(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same rows in every form that keeps missing cells."""
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_csv(folder / "rows.csv.gz", index=False)
    frame.to_parquet(folder / "rows.parquet", row_group_size=100)
    frame.to_json(folder / "rows.jsonl", orient="records", lines=True, double_precision=15)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    return {
        "csv": folder / "rows.csv",
        "csv.gz": str(folder / "rows.csv.gz"),
        "parquet": [folder / "rows.parquet"],
        "jsonl": folder / "rows.jsonl",
        "pandas": frame,
        "pandas, arrow types": frame.convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.from_arrow(arrow),
        "arrow": arrow,
        "arrow reader": arrow.to_reader(max_chunksize=70),
        "numpy": {name: column.to_numpy() for name, column in frame.items()},
    }


FORMS = [
    "csv",
    "csv.gz",
    "parquet",
    "jsonl",
    "pandas",
    "pandas, arrow types",
    "polars",
    "arrow",
    "arrow reader",
    "numpy",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_statistics_of_pandas(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE", 64)  # several batches
    frame = titanic_like()
    compare_with_pandas(gather(forms(frame, tmp_path)[form]), frame)


@pytest.mark.parametrize("kind", list(WRITERS))
def test_files_without_missing_cells(tmp_path: Path, kind: str) -> None:
    rows = some_rows(300)
    found = gather(write_files(tmp_path, kind, rows, 3))
    weight = found.columns["weight"]
    assert (found.rows, weight.dtype, weight.shape) == (300, "float32", ())
    assert weight.mean == pytest.approx(float(rows["weight"].astype(float).mean()), rel=1e-6)
    assert found.columns["word"].missing == int((rows["word"] == b"").sum())


def test_sketches_keep_their_error() -> None:
    n = 400_000
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=n)
    words = np.array([f"w{k}" for k in generator.integers(0, 150_000, n)], object)
    whole = generator.integers(0, 2**62, n)
    found = gather({"x": numbers, "w": words, "i": whole, "few": whole % 7}).columns
    levels = np.linspace(0.01, 0.99, 25)
    ranks = np.searchsorted(np.sort(numbers), found["x"].numbers.quantiles(levels.tolist())) / n
    assert 0 < found["x"].rank_error < 0.003
    assert np.abs(ranks - levels).max() <= found["x"].rank_error
    assert found["x"].mean == pytest.approx(numbers.mean(), rel=1e-9)
    for name, true in (("x", n), ("w", len(set(words.tolist()))), ("i", n)):
        assert found[name].error == RELATIVE_ERROR
        assert abs(found[name].different - true) <= 3 * RELATIVE_ERROR * true
    assert (found["few"].different, found["few"].error, found["few"].rank_error) == (7, 0.0, 0.0)


def test_numbers_that_become_many_late_are_all_in_the_sketch() -> None:
    numbers = np.concatenate([np.zeros(300_000), np.arange(100_000.0)])
    found = gather({"x": numbers}).columns["x"]
    assert found.numbers is not None
    assert found.numbers.below([0.0])[0] == pytest.approx(0.75, abs=found.rank_error)
    assert abs(found.different - 100_000) <= 3 * RELATIVE_ERROR * 100_000


def test_whole_numbers_of_which_later_ones_are_real(tmp_path: Path) -> None:
    lines = [str(number) for number in range(20_000)] + ["0.5", "", "7.25"]
    (tmp_path / "rows.csv").write_text("x,y\n" + "\n".join(f"{x},1" for x in lines) + "\n")
    (tmp_path / "rows.jsonl").write_text(
        "\n".join(f'{{"x": {x or "null"}, "y": 1}}' for x in ["1"] * 40_000 + lines) + "\n"
    )
    for path, rows_ in ((tmp_path / "rows.csv", 20_003), (tmp_path / "rows.jsonl", 60_003)):
        found = gather(path)
        assert (found.rows, found.bad_rows) == (rows_, 0)
        assert (found.columns["x"].dtype, found.columns["y"].dtype) == ("float32", "int64")
        assert (found.columns["x"].missing, found.columns["x"].different) == (1, 20_002)


def test_bad_rows_are_told_with_their_line(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", some_rows(30))
    with path.open("a") as file:
        file.write('x,y\n1,2.5,3,5" pipe,1\n')
    found = gather(path)
    assert (found.rows, found.bad_rows) == (30, 2)
    assert found.bad[0].startswith(f"{path}, line ")
    assert "2 fields, fewer than the 5 columns" in found.bad[0]
    assert "a quote inside a field" in found.bad[1]


def test_a_limit_reads_no_more(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", some_rows(50))
    frame = titanic_like(50)
    for source in (path, frame, pl.from_pandas(frame), {"id": np.arange(50)}):
        found = gathered(sources.rows_of_source(source, 20), limit=20)
        assert found.rows == 20
        assert found.columns["id"].values == 20
        assert gather(source, limit=50).all_rows
    assert not gather(path, limit=20).all_rows


def test_lists_shapes_and_examples(tmp_path: Path) -> None:
    from estimator_inputs import write_tfrecord

    records = [example({"a": np.arange(k % 3), "b": np.array([1.5, 2.5]), "c": k}) for k in range(9)]
    write_tfrecord(tmp_path / "rows.tfrecord", records)
    found = gather(tmp_path / "rows.tfrecord").columns
    assert (found["a"].shape, found["a"].sizes, found["a"].missing, found["a"].values) == ((None,), (1, 2), 3, 9)
    assert (found["b"].shape, found["c"].shape) == ((2,), ())
    lists = pa.table(
        {"v": pa.array([[1.0, None], [], None, [2.0]]), "f": pa.array([[1, 2]] * 4, pa.list_(pa.int8(), 2))}
    )
    found = gather(lists).columns
    assert (found["v"].missing, found["v"].values, found["v"].shape) == (3, 2, (None,))
    assert (found["f"].missing, found["f"].values, found["f"].shape) == (0, 8, (2,))
    assert gather({"image": np.zeros((5, 2, 3))}).columns["image"].shape == (2, 3)


def test_an_input_fn_of_features_and_labels() -> None:
    x = {"a": np.arange(10), "s": np.array(["u", "v"] * 5)}
    found = gather(numpy_input_fn(x, np.arange(10) % 2, batch_size=3, shuffle=False))
    assert (found.rows, set(found.columns)) == (10, {"a", "s", "labels"})
    endless = numpy_input_fn(x, batch_size=3, shuffle=False, num_epochs=None)
    with pytest.raises(ArgumentError, match="never ends"):
        gather(endless)
    assert gather(endless, limit=100).rows == 102
    found = gather([({"a": np.ones((2, 1))}, np.zeros(2))])
    assert (found.rows, found.columns["a"].shape) == (2, (1,))


@pytest.mark.parametrize("most", [1e300, 1.7e308])
@pytest.mark.parametrize("late", [False, True])
def test_the_statistics_of_numbers_whose_squares_overflow(most: float, late: bool) -> None:
    numbers = np.array([3e144, -5.0, most, -most / 2, most / 4, 7e149])
    if late:
        tables = [pa.table({"x": numbers[:2]}), pa.table({"x": numbers[2:]})]
        found = gathered(rows.rows_of_tables(tables)).columns["x"]
    else:
        found = gather({"x": numbers}).columns["x"]
    unit = most / 2
    assert found.mean == pytest.approx(float((numbers / unit).mean()) * unit, rel=1e-14)
    assert found.deviation == pytest.approx(float((numbers / unit).std()) * unit, rel=1e-14)
    assert found.numbers is not None
    assert found.numbers.quantiles([0, 0.1, 1]) == pytest.approx([-most / 2, -most / 4, most], rel=1e-14)


def test_the_median_of_numbers_whose_distance_overflows() -> None:
    found = gather({"x": [-1.7e308, 1.7e308]}).columns["x"]
    assert (found.median, found.mean, found.deviation) == (0.0, 0.0, 1.7e308)


def test_infinite_numbers_dates_and_bytes() -> None:
    found = gather(
        {
            "x": np.array([1.0, np.inf, -np.inf, np.nan]),
            "t": np.array(["2024-01-02", "NaT", "2024-01-04", "2024-01-03"], "datetime64[D]"),
            "b": np.array([b"\xff", b"", b"a", b"a"], object),
            "n": np.array([None, None, None, None], object),
        }
    ).columns
    assert (found["x"].infinite, found["x"].mean, found["x"].missing, found["x"].maximum) == (2, 1.0, 1, np.inf)
    assert (found["t"].kind, found["t"].missing, found["t"].minimum) == ("time", 1, 1704153600.0)
    assert dict(found["b"].words) == {"a": 2, "\\xff": 1}
    assert (found["n"].kind, found["n"].missing) == ("other", 4)


def test_a_sparse_column_of_a_frame_has_the_statistics_of_its_values() -> None:
    values = [0, 3, 0, 5]
    sparse = gather(pd.DataFrame({"x": pd.arrays.SparseArray(values)})).columns["x"]
    assert (sparse.kind, sparse.mean, sparse.minimum, sparse.maximum) == ("number", 2.0, 0, 5)


@pytest.mark.parametrize("form", ["parquet", "pandas", "arrow"])
def test_periods_are_no_numbers(tmp_path: Path, form: str) -> None:
    """Inputs refuse a column of periods, whose numbers depend on the unit. One value is missing."""
    frame = pd.DataFrame({"month": pd.PeriodIndex(["2020-01", None, "2020-03"], freq="M"), "y": [1, 2, 3]})
    frame.to_parquet(tmp_path / "rows.parquet")
    source = {"parquet": tmp_path / "rows.parquet", "pandas": frame, "arrow": pa.Table.from_pandas(frame)}[form]
    found = gather(source).columns
    assert (found["month"].kind, found["month"].dtype, found["month"].missing) == ("other", "period", 1)
    assert (found["y"].kind, found["y"].mean) == ("number", 2.0)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match="Column 'x' holds values of several types: Unsupported numpy type"):
        gather(pd.DataFrame({"x": [1j]}))
    with pytest.raises(InputError, match="Column 'x' holds values of several types"):
        gather(pd.DataFrame({"x": [1, "a", None]}))
    with pytest.raises(InputError, match="Column 'x' holds values of several types"):
        gather({"x": np.array([1, "a"], object)})
    with pytest.raises(ArgumentError, match=r"the same number of rows, given: \{'x': 2, 'y': 3\}"):
        gather({"x": np.zeros(2), "y": np.zeros(3)})
    with pytest.raises(ArgumentTypeError, match="A source must be files, a DataFrame"):
        gather(7)
    batches = [rows.rows_of_columns({"x": pa.array([1])}, 1, 0), rows.rows_of_columns({"x": pa.array(["a"])}, 1, 1)]
    with pytest.raises(InputError, match="Column 'x' is int64 in its first rows and string in later ones"):
        gathered(batches)
    with pytest.raises(ArgumentError, match="kind must be one of csv"):
        rows_of_files(__file__, None, "xml")


def test_rows_with_different_numbers_of_axes_are_refused() -> None:
    gatherer = ColumnGatherer("x")
    gatherer.add(cells_of([[1.0, 2.0, 3.0]]), rows=1)
    with pytest.raises(
        InputError, match=r"'x' has rows of shape \(3,\) and rows of shape \(3, 1\)\. Give all rows the"
    ):
        gatherer.add(cells_of(np.ones((1, 3, 1))), rows=1)
