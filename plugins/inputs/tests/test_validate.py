"""Tests of rows against a schema: each violation with its first row, and how far the values have moved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from estimator_core._cli.main import main
from estimator_core.errors import ArgumentError
from estimator_inputs import Limits, Schema, learn_schema, validate
from estimator_inputs.cli import actions
from estimator_inputs.reading.files import find_files
from estimator_inputs.schema.drift import jensen_shannon
from estimator_inputs.statistics import files
from plugins.inputs.tests.test_statistics import FORMS, forms, titanic_like
from plugins.inputs.tests.written import example


def told(source: Any, schema: Schema, **options: Any) -> list[tuple[str, str]]:
    return [(one.kind, str(one)) for one in validate(source, schema, **options).anomalies]


@pytest.mark.parametrize("form", FORMS)
def test_the_rows_it_was_learned_from_keep_to_a_schema_in_every_form(tmp_path: Path, form: str) -> None:
    frame = titanic_like()
    schema = learn_schema(frame, label="siblings")
    assert told(forms(frame, tmp_path)[form], schema) == []


def schema_of_people() -> Schema:
    generator = np.random.default_rng(1)
    return learn_schema(
        pd.DataFrame(
            {
                "age": generator.integers(18, 80, 400),
                "pay": np.round(generator.normal(3000, 500, 400), 2),
                "port": generator.choice(["C", "Q", "S"], 400),
                "ok": generator.random(400) < 0.5,
                "y": generator.integers(1, 4, 400),
            }
        ),
        label="y",
    )


def people(**changed: Any) -> pd.DataFrame:
    frame = pd.DataFrame(
        {"age": [20, 30, 40, 50], "pay": [3000.0] * 4, "port": ["C", "Q", "S", "C"], "ok": [True, False] * 2, "y": 2}
    )
    for name, values in changed.items():
        frame[name] = values
    return frame


def test_columns_that_are_ignored_are_not_compared() -> None:
    schema, wrong = schema_of_people(), people(age=None, pay=[9e9] * 4, new="x")
    assert {one.column for one in validate(wrong, schema).anomalies} == {"age", "pay", "new", "y"}
    assert {one.column for one in validate(wrong, schema, ignore=["age", "new"]).anomalies} == {"pay", "y"}
    assert "age" not in {one.column for one in validate(wrong, schema, ignore=["age"]).distances}
    with pytest.raises(ArgumentError, match="no column 'ages' to ignore"):
        validate(wrong, schema, ignore=["ages"])


WRONG = {
    "below": ({"age": [20, 30, -1, 50]}, "range", "age: 1 of 4 values are outside 18 to 79: -1 at {2}"),
    "infinite": ({"pay": [3e3, np.inf, 3e3, 3e3]}, "range", "values are outside"),
    "new category": ({"port": ["C", "X", "X", "Z"]}, "new values", "'X' at {1}; others: 'Z'"),
    "a class that is none": ({"y": [1, 2, 3, 4]}, "new values", "y: 1 of 4 values are not in the vocabulary: 4 at {3}"),
    "missing number": (
        {"pay": [3e3, 3e3, 3e3, np.nan]},
        "missing values",
        "pay: 1 of 4 rows lack a value (25.00%), but the schema allows 0.00%: the first is {3}",
    ),
    "missing word": ({"port": ["C", "", "S", "C"]}, "missing values", "the first is {1}"),
    "words for numbers": (
        {"age": ["20", "30", "old", "50"]},
        "type",
        "age: 1 of 4 values are not numbers: 'old' at {2}",
    ),
    "real for whole": (
        {"age": [20.0, 30.5, 40.0, 50.0]},
        "type",
        "age: 1 of 4 values are not whole numbers: 30.5 at {1}",
    ),
    "numbers for words": ({"port": [1, 2, 3, 4]}, "type", "port: is numbers (int64), but the schema has text (string)"),
    "numbers for truth": ({"ok": [1, 0, 1, 0]}, "type", "ok: is numbers (int64), but the schema has true or false"),
}


@pytest.mark.parametrize("door", ["pandas", "polars", "arrow", "csv", "parquet", "jsonl"])
@pytest.mark.parametrize("case", list(WRONG))
def test_what_breaks_a_schema_is_told_with_its_row(tmp_path: Path, case: str, door: str) -> None:
    changed, kind, text = WRONG[case]
    frame = people(**changed)
    source, rows = _through(frame, door, tmp_path)
    if case == "infinite" and door == "jsonl":
        frame.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)  # null: JSON has no infinity
        kind, text = "missing values", "pay: 1 of 4 rows lack a value"
    found = [one for one in told(source, schema_of_people()) if one[0] != "drift"]
    expected = text.format(*rows)
    assert [one[0] for one in found] == [kind]
    assert expected in found[0][1]


def _through(frame: pd.DataFrame, door: str, folder: Path) -> tuple[Any, list[str]]:
    in_memory = [f"row {row}" for row in range(4)]
    if door == "pandas":
        return frame, in_memory
    if door == "polars":
        return pl.from_pandas(frame), in_memory
    if door == "arrow":
        return pa.Table.from_pandas(frame), in_memory
    path = folder / f"rows.{door}"
    if door == "csv":
        frame.to_csv(path, index=False)
        return path, [f"{path}, line {row + 2}" for row in range(4)]
    if door == "parquet":
        frame.to_parquet(path)
        return path, [f"{path}, row {row}" for row in range(4)]
    frame.to_json(path, orient="records", lines=True)
    return path, [f"{path}, line {row + 1}" for row in range(4)]


def test_columns_that_are_missing_or_new_and_rows_without_a_label() -> None:
    schema = schema_of_people()
    frame = people(extra=1).drop(columns=["pay", "y"])
    kinds = [(kind, text.split(":")[0]) for kind, text in told(frame, schema)]
    assert [one for one in kinds if one[0] != "drift"] == [
        ("missing column", "pay"),
        ("missing column", "y"),
        ("new column", "extra"),
    ]
    unlabelled = [(kind, text.split(":")[0]) for kind, text in told(frame, schema, label=False)]
    assert ("missing column", "y") not in unlabelled


def test_shapes_lists_and_bad_rows(tmp_path: Path) -> None:
    from estimator_inputs import write_tfrecord

    schema = learn_schema({"v": np.ones((4, 3))})
    assert told({"v": np.ones((4, 2))}, schema) == [("shape", "v: has rows of shape (2), but the schema has (3)")]
    write_tfrecord(tmp_path / "a.tfrecord", [example({"a": 1.0, "b": b"x"})] * 5)
    schema = learn_schema(tmp_path / "a.tfrecord")
    write_tfrecord(tmp_path / "b.tfrecord", [example({"a": 1.0, "b": b"x"})] * 4 + [example({"a": 9.0}), b"\xffbad"])
    found = told(tmp_path / "b.tfrecord", schema)
    assert [kind for kind, _ in found] == ["bad rows", "range", "missing values"]
    assert "1 of 6 rows are bad" in found[0][1]
    assert f"9 at {tmp_path}/b.tfrecord, record 4" in found[1][1]


def test_limits_let_a_share_through() -> None:
    schema = schema_of_people()
    frame = people(age=[20, 30, -1, 50], port=["C", "X", "S", "C"])
    far = {"jensen_shannon": 1.0, "l_infinity": 1.0}
    assert told(frame, schema, limits=Limits(outside=0.25, unknown=0.25, **far)) == []
    kinds = [kind for kind, _ in told(frame, schema, limits=Limits(outside=0.2, unknown=0.2, **far))]
    assert kinds == ["range", "new values"]
    with pytest.raises(ArgumentError, match=r"outside must be from 0 to 1, given: 1\.5"):
        Limits(outside=1.5)


def test_limits_of_real_numbers_are_those_an_input_returns() -> None:
    schema = learn_schema({"x": np.array([0.1, 0.7, 0.42])})
    assert told({"x": np.array([0.1, 0.7, 0.42], np.float32)}, schema) == []
    assert [kind for kind, _ in told({"x": np.array([0.09, 0.7], np.float32)}, schema)] == ["range"]


def test_drift_is_told_where_chance_does_not_make_it() -> None:
    generator = np.random.default_rng(5)
    before = {"x": generator.normal(size=5000), "w": generator.choice(["a", "b"], 5000, p=[0.8, 0.2])}
    schema = learn_schema(before)
    wide = Limits(outside=1)
    for size in (30, 1000):
        same = {"x": generator.normal(size=size), "w": generator.choice(["a", "b"], size, p=[0.8, 0.2])}
        assert told(same, schema, limits=wide) == []
    moved = {"x": generator.normal(0.8, size=1000), "w": generator.choice(["a", "b"], 1000, p=[0.5, 0.5])}
    found = validate(moved, schema, limits=wide)
    assert {one.column for one in found.anomalies if one.kind == "drift"} == {"x", "w"}
    by_name = {one.column: one for one in found.distances}
    assert by_name["w"].l_infinity == pytest.approx(0.3, abs=0.05)
    p = np.array([np.mean(before["w"] == word) for word in "ab"])
    q = np.array([np.mean(moved["w"] == word) for word in "ab"])
    assert by_name["w"].jensen_shannon == pytest.approx(jensen_shannon(p, q), rel=1e-9)


def test_jensen_shannon_is_that_of_scipy() -> None:
    distance = pytest.importorskip("scipy.spatial.distance")
    generator = np.random.default_rng(0)
    for _ in range(50):
        p, q = generator.dirichlet(np.full(7, 0.3), 2)
        assert jensen_shannon(p, q) == pytest.approx(distance.jensenshannon(p, q, 2), abs=1e-9)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, schema, new = tmp_path / "train.csv", tmp_path / "schema.toml", tmp_path / "new.parquet"
    frame = titanic_like(891)
    frame.to_csv(train, index=False)
    assert main(["inputs", "schema", str(train), "--label", "siblings", "--output", str(schema)]) == 0
    assert "schema.toml: 5 columns" in capsys.readouterr().out
    assert main(["inputs", "schema", str(train), "--label", "siblings"]) == 0
    assert capsys.readouterr().out == schema.read_text()
    assert main(["inputs", "schema", str(train), "--label", "siblings", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["label"], len(told["columns"])) == (None, "siblings", 5)
    assert main(["inputs", "schema", str(train), "--output", str(schema)]) == 2
    assert "schema.toml exists and may have been edited" in capsys.readouterr().err
    assert main(["inputs", "validate", str(train), "--schema", str(schema)]) == 0
    assert "891 rows, 0 anomalies" in capsys.readouterr().out
    changed = frame.drop(columns="siblings")
    changed.loc[5, "port"] = "X"
    changed.to_parquet(new)
    arguments = ["inputs", "validate", str(new), "--schema", str(schema), "--no-label"]
    assert main(arguments) == 3
    assert f"'X' at {new}, row 5" in capsys.readouterr().out
    assert main([*arguments, "--max-unknown", "0.01"]) == 0
    arguments = ["inputs", "validate", str(new), "--against", str(train), "--label", "siblings"]
    assert main([*arguments, "--no-label", "--json"]) == 3
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(one["kind"], one["column"]) for one in found["anomalies"]] == [("new values", "port")]
    assert {one["column"] for one in found["distances"]} == {"age", "port", "fare"}
    for wrong in ([], ["--schema", str(schema), "--against", str(train)]):
        assert main(["inputs", "validate", str(new), *wrong]) == 2
        assert "Give either --schema SCHEMA or --against FILE" in capsys.readouterr().err


def test_an_edited_schema_counts(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    schema_of_people().write(path)
    text = path.read_text().replace("maximum = 79.0", "maximum = 45.0").replace('    "S",\n', "")
    path.write_text(text)
    found = [one for one in told(people(), Schema.read(path)) if one[0] != "drift"]
    assert [kind for kind, _ in found] == ["range", "new values"]


def test_texts_of_no_value_are_missing_through_every_action(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marked, empty, table = tmp_path / "marked.csv", tmp_path / "empty.csv", tmp_path / "rows.parquet"
    frame = titanic_like(300)
    frame.to_csv(empty, index=False)
    frame.to_csv(marked, index=False, na_rep="NA")
    frame.to_parquet(table)
    assert frame["age"].isna().any()
    given = ["--na-values", "NA,?"]
    told = []
    for path, more in ((marked, given), (empty, [])):
        assert main(["inputs", "inspect", str(path), "--json", *more]) == 0
        told.append(json.loads(capsys.readouterr().out)["columns"])
        assert main(["inputs", "schema", str(path), "--label", "siblings", *more]) == 0
        told.append(capsys.readouterr().out)
    assert told[:2] == told[2:]
    assert main(["inputs", "validate", str(marked), "--against", str(empty), *given]) == 0
    assert main(["inputs", "validate", str(table), "--against", str(marked), *given]) == 0
    assert main(["inputs", "validate", str(marked), "--against", str(table), *given]) == 0
    assert main(["inputs", "validate", str(marked), "--against", str(empty)]) == 3
    capsys.readouterr()
    for wrong in (["inspect", str(table)], ["validate", str(table), "--against", str(table)]):
        assert main(["inputs", *wrong, *given]) == 2
        assert "is for CSV" in capsys.readouterr().err


def test_another_character_between_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, commas, table = tmp_path / "other.csv", tmp_path / "commas.csv", tmp_path / "rows.parquet"
    frame = titanic_like(300)
    frame.to_csv(commas, index=False)
    frame.to_csv(other, index=False, sep=";")
    frame.to_parquet(table)
    given = ["--field-delim", ";"]
    told = []
    for path, more in ((other, given), (commas, [])):
        assert main(["inputs", "inspect", str(path), "--json", *more]) == 0
        told.append(json.loads(capsys.readouterr().out)["columns"])
    assert told[0] == told[1]
    assert main(["inputs", "validate", str(other), "--against", str(table), *given]) == 0
    assert main(["inputs", "validate", str(table), "--against", str(other), *given]) == 0
    assert main(["inputs", "inspect", str(commas), "--field-delim", "; "]) == 2
    assert "field_delim must be one ASCII character" in capsys.readouterr().err


def test_files_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files at a URL are copied at each search."""
    frame = titanic_like(300)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "others.csv", index=False)
    looked = []

    def counting(pattern: Any) -> Any:
        looked.append(pattern)
        return find_files(pattern)

    monkeypatch.setattr(files, "find_files", counting)
    monkeypatch.setattr(actions, "find_files", counting)
    assert main(["inputs", "validate", str(tmp_path / "rows.csv"), "--against", str(tmp_path / "others.csv")]) == 0
    assert len(looked) == 2


def empty_column(folder: Path, form: str) -> Any:
    """Four rows of a column without values."""
    frame = pd.DataFrame({"x": [np.nan] * 4, "y": ["a", "b", "a", "b"]})
    if form == "frame":
        return frame
    path = folder / f"empty.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_a_column_without_values_has_no_type(tmp_path: Path, form: str) -> None:
    """Its type depends on the reader: a CSV file has strings, a DataFrame real numbers."""
    numbers = pd.DataFrame({"x": [1, 2, 3, 2], "y": ["a", "b", "a", "b"]})
    empty = empty_column(tmp_path, form)
    assert [kind for kind, _ in told(empty, learn_schema(numbers))] == ["missing values"]
    feature = learn_schema(empty).feature("x")
    assert (feature.kind, feature.dtype, feature.most_missing) == ("other", "null", 1.0)
    assert told(numbers, learn_schema(empty)) == []
    lists = numbers.assign(x=[[1, 2]] * 4)
    assert told(lists, learn_schema(empty)) == []


def test_a_range_shows_all_digits_and_points_in_time() -> None:
    schema = learn_schema({"v": [0.0, 1_000_000.0], "w": np.float32([0.1, 0.2])})
    assert told({"v": [1_000_001.0, 5.5], "w": np.float32([0.1, 0.3])}, schema) == [
        ("range", "v: 1 of 2 values are outside 0 to 1000000: 1000001 at row 0"),
        ("range", "w: 1 of 2 values are outside 0.1 to 0.2: 0.3 at row 1"),
    ]
    days = learn_schema(pd.DataFrame({"day": pd.date_range("2024-01-01", periods=400)}))
    found = told(pd.DataFrame({"day": pd.date_range("2031-05-01", periods=400)}), days)
    assert found[0][1].endswith("outside 2024-01-01T00:00:00 to 2025-02-03T00:00:00: 2031-05-01T00:00:00 at row 0")
    assert found[1][1].endswith("at above 2025-02-03T00:00:00")


@pytest.mark.parametrize("kind", ["array", "csv"])
def test_a_number_above_those_of_float32_is_reported_as_it_is(tmp_path: Path, kind: str) -> None:
    def source(*values: float) -> Any:
        if kind == "array":
            return {"x": np.array(values)}
        path = tmp_path / f"{len(values)}.csv"
        path.write_text("\n".join(["x", *map(str, values), ""]))
        return path

    found = told(source(1.5, 2.5, 1e300), learn_schema(source(1.5, 2.5)))
    assert ("range", "x: 1 of 3 values are outside 1.5 to 2.5: 1e+300 at " + _last(source(1.5, 2.5, 1e300))) in found
    assert told(source(1.5, 2.5, 1e300), learn_schema(source(1.5, 2.5, 1e300))) == []


def _last(source: Any) -> str:
    return "row 2" if isinstance(source, dict) else f"{source}, line 4"


@pytest.mark.parametrize("per_second", [1e3, 1e6, 1e9])
def test_numbers_far_from_the_times_of_a_schema_are_reported(per_second: float) -> None:
    """Such as milliseconds since 1970 in place of times. They are after the year 9999."""
    days = learn_schema(pd.DataFrame({"day": pd.date_range("2024-01-01", periods=400)}))
    found = dict(told(pd.DataFrame({"day": np.full(400, 1_704_067_200 * per_second)}), days))
    assert f": {1_704_067_200 * per_second:.15g} seconds after 1970 at row 0" in found["range"]


@pytest.mark.parametrize("rows", [1, 2, 20])
@pytest.mark.parametrize("column", ["mostly one number", "mostly one word", "many words"])
def test_few_rows_of_the_same_source_seldom_drift(column: str, rows: int) -> None:
    generator = np.random.default_rng(5)

    def drawn(count: int) -> dict[str, Any]:
        often = generator.random(count) < 0.93
        other = {
            "mostly one number": lambda: np.where(often, 0.0, generator.exponential(size=count)),
            "mostly one word": lambda: np.where(often, "a", "b"),
            "many words": lambda: generator.integers(0, 50, count).astype(str),
        }
        return {"v": other[column]()}

    schema = learn_schema(drawn(2000))
    found = [[kind for kind, _ in told(drawn(rows), schema) if kind == "drift"] for _ in range(60)]
    assert sum(map(len, found)) <= 2
