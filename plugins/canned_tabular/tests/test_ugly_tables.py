"""Tests of tables as spreadsheets and exports write them.

They are used, or refused with an error that names the cause.
"""

from datetime import timedelta

import numpy as np
import pytest

from estimator_canned_tabular.cli.almost_numbers import almost_numbers
from estimator_canned_tabular.cli.described import described
from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.cli.schema import Schema
from estimator_core._cli.main import main

HEADER = "age,city,income"
ROWS = [f"{30 + n % 17}.5,{('Rome', 'Oslo', 'Lima')[n % 3]},{('low', 'high')[n % 2]}" for n in range(40)]


def text(header=HEADER, rows=ROWS, end="\n"):
    return "".join(f"{line}{end}" for line in (header, *rows))


def trained(tmp_path, data, *more, label="income"):
    path = tmp_path / "rows.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    quick = ["--model", "linear", "--epochs", "1", "--patience", "0", "--no-plots", "--no-export"]
    return main(
        ["tabular", "train", "--csv", str(path), "--label", label, "--model-dir", str(tmp_path / "m"), *quick, *more]
    )


REFUSED = {
    "semicolons": (
        text().replace(",", ";"),
        2,
        "there is no column 'income'. Columns: age;city;income. Its columns are separated by ';'",
    ),
    "tabs": (
        text().replace(",", "\t"),
        2,
        r"Its columns are separated by '\t': --field-delim $'\t'",
    ),
    "spaces in the header": (
        text(" age , city , income "),
        2,
        "It is called ' income ' there: give --label ' income '",
    ),
    "another case": (text("Age,City,Income"), 2, "It is called 'Income' there: give --label 'Income'"),
    "a name twice": (text("age,age,income"), 1, "rows.csv, line 1: two columns are named 'age'"),
    "UTF-16": (text().encode("utf-16"), 1, "rows.csv is text in UTF-16. Write it again in UTF-8"),
    "CR alone": (text(end="\r"), 1, "rows.csv: its lines end in CR"),
    "Latin-1": (
        text().replace("Rome", "R\u00f4me").encode("latin-1"),
        1,
        "line 2: column 'city': 'R\\xf4me' is not valid UTF-8",
    ),
    "two rows": (
        text(rows=ROWS[:2]),
        2,
        "rows.csv has fewer than 10 rows, too few to hold out a test: give --eval-csv",
    ),
    "one class": (
        text(rows=[row.replace("low", "high") for row in ROWS]),
        2,
        "'income' has only one value: 'high'. Add rows with another value",
    ),
    "an infinite number": (text(rows=["inf,Rome,low", *ROWS]), 1, "Feature 'age' holds inf in"),
    "a label is empty": (text(rows=["30,Rome,", *ROWS]), 2, "is empty in 1 rows: leave them out with --on-error skip"),
    "a label is nan among numbers": (
        text(rows=[*[row.replace("low", "0").replace("high", "1") for row in ROWS], "30,Rome,nan"]),
        2,
        "'income' is nan or infinite in 1 rows, and a number in the others: leave them out with --on-error skip",
    ),
    "a number to predict is nan": (
        text(
            rows=[f"30,{row.rsplit(',', 1)[0].replace(',', '')[4:]},{n}.5" for n, row in enumerate(ROWS)] + ["3,a,nan"]
        ),
        2,
        "'income' is nan or infinite in 1 rows: remove those rows from the file",
    ),
    "UTF-16 without its mark": (text().encode("utf-16-le"), 1, "is not text, or text in UTF-16"),
    "a column without a name": (text(",city,income"), 2, "Column 1 has no name: give it one in the first line"),
    "names alone": (
        text("name,income", [f"n{n},{('low', 'high')[n % 2]}" for n in range(40)]),
        2,
        "No column can predict the label 'income': all are left out",
    ),
    "no header": (text(ROWS[0], ROWS[1:]), 2, "there is no column 'income'. Columns: 30.5, Rome, low."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_its_cause(tmp_path, capsys, case):
    data, code, message = REFUSED[case]
    assert trained(tmp_path, data) == code
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
    assert not (tmp_path / "m").exists()


TAKEN = {
    "a byte order mark, and CR LF": ("\ufeff" + text(end="\r\n"), ""),
    "huge numbers": (text(rows=[row.replace("30.5", "1e25") for row in ROWS]), ""),
    "nothing but one value": (
        text("unit,kind," + HEADER, [f"7,same,{row}" for row in ROWS]),
        "left out: unit, kind (identifiers, names, and columns with one value",
    ),
    "no value at all": (text("none," + HEADER, [f",{row}" for row in ROWS]), "left out: none ("),
    "the index of pandas": (text("," + HEADER, [f"{n},{row}" for n, row in enumerate(ROWS)]), "left out: '' ("),
    "decimal commas": (
        text(
            rows=[f'"{row.replace(".", ",", 1).replace(",", chr(34) + ",", 2).replace(chr(34), "", 1)}' for row in ROWS]
        ),
        "read as words: age, with values such as '30,5'",
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_taken_and_told(tmp_path, capsys, case):
    data, message = TAKEN[case]
    assert trained(tmp_path, data) == 0
    assert message in capsys.readouterr().out


def test_parquet_is_read_as_csv_is(tmp_path, capsys):
    """The file has words, truth values, missing numbers and categories. Its predictions are those of the CSV file."""
    pd = pytest.importorskip("pandas")
    ages = [None if n % 7 == 0 else 30.5 + n % 17 for n in range(40)]
    frame = pd.DataFrame({"age": ages, "member": [n % 3 > 0 for n in range(40)], "kind": list("xyxz") * 10})
    frame["kind"] = frame["kind"].astype("category")
    frame["income"] = [("low", "high")[n % 2] for n in range(40)]
    tables = {}
    for suffix in ("parquet", "csv"):
        path = tmp_path / f"rows.{suffix}"
        frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
        quick = ["--model", "linear", "--epochs", "1", "--patience", "0", "--no-plots", "--no-export"]
        folder = ["--model-dir", str(tmp_path / suffix)]
        assert main(["tabular", "train", "--rows", str(path), "--label", "income", *folder, *quick]) == 0
        out = capsys.readouterr().out
        tables[suffix] = [line for line in out.splitlines() if line.startswith(("  ", "classes", "trained", "linear"))]
        tables[suffix].append((tmp_path / suffix / "columns.json").read_text())
    assert tables["parquet"] == tables["csv"]


def flags(tmp_path):
    """Writes a truth value that determines the label, as Parquet, as pandas' CSV and as a spreadsheet's CSV."""
    pd = pytest.importorskip("pandas")
    told = [n % 3 > 0 for n in range(60)]
    frame = pd.DataFrame({"x": np.arange(60) % 7 + 0.5, "flag": told, "label": [("n", "y")[one] for one in told]})
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    sheet = (tmp_path / "pandas.csv").read_text().replace("True", "TRUE").replace("False", "FALSE")
    (tmp_path / "sheet.csv").write_text(sheet)
    return [tmp_path / name for name in ("rows.parquet", "pandas.csv", "sheet.csv")]


@pytest.mark.slow
@pytest.mark.plugins
def test_truth_values_are_read_alike_from_every_file(tmp_path, capsys):
    """A model of one file is tested on the others and predicts for them."""
    parquet, pandas, sheet = flags(tmp_path)
    model = ["--model", "linear", "--epochs", "30", "--patience", "0", "--no-plots", "--learning-rate", "0.1"]
    for rows, test, more in ((parquet, sheet, []), (pandas, parquet, ["--no-export"])):
        files = ["--rows", str(rows), "--eval-rows", str(test), "--model-dir", str(tmp_path / rows.stem / rows.suffix)]
        assert main(["tabular", "train", *files, "--label", "label", *model, *more]) == 0
        assert "accuracy = 1\n" in capsys.readouterr().out
    export, scores = tmp_path / "rows" / ".parquet" / "export", tmp_path / "scores.csv"
    found = []
    for rows in (parquet, pandas, sheet):
        assert main(["predict", str(export), "--input", str(rows), "--output", str(scores)]) == 0
        found.append(scores.read_text())
    assert found[0] == found[1] == found[2]
    assert [line.split(",")[-1].strip('"') for line in found[0].splitlines()[1:4]] == ["n", "y", "y"]


def test_words_that_are_all_unknown(tmp_path, capsys):
    (tmp_path / "test.csv").write_text(text(rows=[row.replace("Rome", "Bonn") for row in ROWS if "Rome" in row]))
    assert trained(tmp_path, text(), "--eval-csv", str(tmp_path / "test.csv")) == 0
    assert (
        "unknown: no word of city in the test rows is in its vocabulary: found 'Bonn', expected"
        in capsys.readouterr().out
    )
    (tmp_path / "test.csv").write_text(text(rows=[row.replace("Rome", "ROME") for row in ROWS if "Rome" in row]))
    assert trained(tmp_path, text(), "--eval-csv", str(tmp_path / "test.csv")) == 2
    assert "no word of city in the test rows" in capsys.readouterr().err


def test_other_kinds_of_files_are_refused_by_name(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"age": 1, "income": "low"}\n')
    assert main(["tabular", "train", "--rows", str(path), "--label", "income", "--model-dir", str(tmp_path / "m")]) == 2
    assert "rows.jsonl: rows are read from CSV and Parquet files" in capsys.readouterr().err


def test_a_column_that_only_a_later_file_has_is_refused(tmp_path, capsys):
    (tmp_path / "rows-0.csv").write_text("age,income\n1,low\n2,high\n")
    (tmp_path / "rows-1.csv").write_text("age,city,income\n3,Rome,low\n4,Oslo,high\n")
    rows = str(tmp_path / "rows-*.csv")
    assert main(["tabular", "train", "--rows", rows, "--label", "income", "--model-dir", str(tmp_path / "m")]) == 1
    assert "rows-1.csv, line 1: column 'city' is not in" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_a_column_that_only_a_later_file_has_is_refused_beside_lists(tmp_path, capsys):
    columns = {"listed": [[1, 2], [3]], "age": [1, 2], "income": ["low", "high"]}
    parquet(tmp_path / "rows-0.parquet", **columns)
    parquet(tmp_path / "rows-1.parquet", **columns, city=["Rome", "Oslo"])
    rows = str(tmp_path / "rows-*.parquet")
    assert main(["tabular", "train", "--rows", rows, "--label", "income", "--model-dir", str(tmp_path / "m")]) == 1
    assert "rows-1.parquet: column 'city' is not in" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_a_file_of_test_rows_needs_no_tenth(tmp_path):
    (tmp_path / "test.csv").write_text(text(rows=ROWS[:3]))
    assert trained(tmp_path, text(rows=ROWS[:4]), "--eval-csv", str(tmp_path / "test.csv")) == 0


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        (["1", "2", "x"] * 20, "vocabulary", True),
        (["a", "b", "1"] * 20, "vocabulary", False),
        (["5%", "7%"] * 20, "vocabulary", True),
        (["1.234,50 \u20ac", "2,5"] * 20, "vocabulary", True),
        ([str(n) for n in range(60)], "skip", False),  # an identifier
        (["1", "2"] * 20, "numeric", False),
    ],
)
def test_what_looks_like_numbers(words, kind, told):
    profile, label = ColumnProfile(), ColumnProfile()
    profile.add([word.encode() for word in words])
    label.add([b"ab"[n % 2 :][:1] for n in range(len(words))])
    schema = Schema.inferred({"x": profile, "y": label}, "y")
    assert schema.columns["x"].kind == kind
    assert bool(list(almost_numbers(schema, {"x": profile, "y": label}))) == told
    assert any("read as words: x" in line for line in described(schema, {"x": profile, "y": label})) == told


def test_a_label_of_numbers_and_a_word_is_told():
    profile, label = ColumnProfile(), ColumnProfile()
    profile.add([b"ab"[n % 2 :][:1] for n in range(40)])
    label.add([b"NA", *(b"%d" % (n % 20) for n in range(39))])
    schema = Schema.inferred({"x": profile, "mass": label}, "mass")
    assert len(schema.classes) == 21
    assert (
        "read as words: mass, of which 39 of 40 values are numbers; the others: 'NA'. If they mean no value in a CSV "
        "file, give --na-values=NA. Otherwise write numbers"
    ) in described(schema, {"x": profile, "mass": label})


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([str(1_700_000_000_000 + n % 20) for n in range(60)], 1),  # milliseconds
        ([str(2**40 + 100_000 * (n % 4)) for n in range(60)], 4),
        ([f"{n % 20 / 7:.17f}" for n in range(60)], 20),
    ],
)
def test_numbers_that_float32_does_not_keep_apart_are_told(numbers, kept):
    profile, label = ColumnProfile(), ColumnProfile()
    profile.add([number.encode() for number in numbers])
    label.add([b"a", b"b"] * 30)
    profiles = {"x": profile, "y": label}
    different = len(set(numbers))
    line = f"read coarsely: x, of whose {different} different numbers float32 keeps {kept}. Subtract the smallest one"
    told = [said for said in described(Schema.inferred(profiles, "y"), profiles) if said.startswith("read coarsely")]
    assert told == ([] if kept == different else [f"{line} in the file"])


def test_labels_that_float32_does_not_keep_apart_are_told():
    label = ColumnProfile()
    label.add([str(2**40 + n).encode() for n in range(60)])
    (line,) = described(Schema(label="y"), {"y": label})
    assert line.startswith("read coarsely: y, of whose 60 different numbers float32 keeps 1.")


def test_a_word_that_some_rows_lack_is_no_constant():
    profile, label = ColumnProfile(), ColumnProfile()
    profile.add([b"yes", b""] * 20)
    label.add([b"a", b"b"] * 20)
    assert Schema.inferred({"x": profile, "y": label}, "y").columns["x"].kind == "vocabulary"


def test_infinite_numbers_do_not_spoil_the_mean():
    profile = ColumnProfile()
    profile.add([b"1", b"inf", b"3"])
    assert (profile.mean, profile.scale, profile.numbers) == (2.0, 1.0, True)
    assert np.isfinite(profile.scale)


def parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    files.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


def command(tmp_path, path, label="label", *more):
    quick = ["--model", "linear", "--epochs", "1", "--patience", "0", "--no-plots", "--no-export"]
    return main(
        ["tabular", "train", "--rows", str(path), "--label", label, "--model-dir", str(tmp_path / "m"), *quick, *more]
    )


def test_a_label_that_is_nan_in_parquet(tmp_path, capsys):
    labels = [float("nan") if n % 7 == 0 else float(n % 2) for n in range(60)]
    path = parquet(tmp_path / "rows.parquet", x=[n % 5 + 0.5 for n in range(60)], label=labels)
    assert command(tmp_path, path) == 2
    assert "'label' is nan or infinite in 9 rows, and a number in the others" in capsys.readouterr().err
    assert command(tmp_path, path, "label", "--on-error", "skip") == 0
    assert "classes: 1 26 (51.0%), 0 25 (49.0%)" in capsys.readouterr().out


TOLD_APART = {
    "listed": "lists",
    "record": "records",
    "raw": "bytes that are not text in UTF-8",
    "spans": "time spans",
}


def test_columns_of_parquet_that_hold_no_single_value(tmp_path, capsys):
    """They are skipped by name. They are refused as a label, and if columns.json requires one."""
    path = parquet(
        tmp_path / "rows.pq",  # Parquet, according to its first bytes
        listed=[[1, 2], [3]] * 30,
        record=[{"a": 1}, {"a": 2}] * 30,
        raw=[b"\xff\xfe", b"a"] * 30,
        spans=[timedelta(days=1), timedelta(days=2)] * 30,
        spelled=[b"big", b"small"] * 30,
        label=["y", "n"] * 30,
    )
    assert command(tmp_path, path) == 0
    told = capsys.readouterr().out
    for name, content in TOLD_APART.items():
        assert f"left out: {name} holds {content}. Write one number or word per row" in told
    assert Schema.read(tmp_path / "m" / "columns.json").columns["spelled"].words == ("big", "small")
    for name, content in (("listed", "lists"), ("raw", "bytes that are not text")):
        (tmp_path / "m" / "columns.json").unlink(missing_ok=True)
        assert command(tmp_path, path, name) == 2
        assert f"The label {name!r} holds {content}" in capsys.readouterr().err
    edited = tmp_path / "columns.json"
    edited.write_text('{"label": "label", "classes": ["n", "y"], "columns": {"listed": {"kind": "numeric"}}}')
    assert command(tmp_path, path, "label", "--columns", str(edited)) == 2
    assert "the column 'listed' holds lists. Write one number or word" in capsys.readouterr().err
