"""Tests of a schema: it is learned from rows, written as a file, and read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimator_core.errors import ArgumentError
from estimator_inputs import FeatureSchema, Schema, learn_schema
from plugins.inputs.tests.test_statistics import FORMS, forms, titanic_like


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_one_schema(tmp_path: Path, form: str) -> None:
    frame = titanic_like()
    schema = learn_schema(forms(frame, tmp_path)[form], label="siblings")
    age, port = schema.feature("age"), schema.feature("port")
    assert (age.kind, port.kind, schema.feature("siblings").kind) == ("number", "category", "category")
    assert age.missing_rate == frame["age"].isna().mean()
    assert age.mean == pytest.approx(frame["age"].mean())
    assert age.median == pytest.approx(frame["age"].median())
    assert age.minimum == frame["age"].min()
    assert port.vocabulary == ("C", "Q", "S")
    assert port.seen.counts == frame["port"].value_counts().to_dict()
    assert schema.classes == tuple(range(9))
    assert [name for name, one in schema.features.items() if one.is_key] == ["id"]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["yes", "no", "no"], ("no", "yes")),
        ([3, 1, 2], (1, 2, 3)),
        ([1.0, 2.0, float("nan")], (1, 2)),
        ([True, False, True], (False, True)),
        ([0.5, 1.0, 2.0], ()),
    ],
)
def test_classes_of_labels_as_they_come(labels: list[Any], classes: tuple[Any, ...]) -> None:
    schema = learn_schema(pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": labels}), label="y")
    assert schema.classes == classes
    assert [type(one) for one in schema.classes] == [type(one) for one in classes]


def test_words_that_come_once_are_text_and_many_numbers_no_classes() -> None:
    frame = pd.DataFrame({"name": [f"n{k}" for k in range(500)], "y": range(500)})
    schema = learn_schema(frame, label="y")
    assert (schema.feature("name").kind, schema.feature("name").is_key, schema.classes) == ("text", True, ())
    assert learn_schema(frame, label="name").classes == tuple(sorted(frame["name"]))


def full_schema() -> Schema:
    frame = titanic_like(200)
    frame["day"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(frame["id"], "D")
    frame["my list"] = [[1.0, 2.0][: k % 3] for k in range(200)]
    frame["ok"] = frame["id"] % 2 == 0
    frame['odd "name"'] = np.inf
    return learn_schema(frame, label="port")


def test_the_file_gives_the_schema_back(tmp_path: Path) -> None:
    schema = full_schema()
    schema.write(tmp_path / "new" / "schema.toml")
    assert Schema.read(tmp_path / "new" / "schema.toml") == schema


def test_a_schema_of_few_words_is_enough(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'format = "estimator-schema/1"\n[features.age]\nkind = "number"\ndtype = "int64"\n'
    )
    schema = Schema.read(tmp_path / "s.toml")
    assert schema.features == {"age": FeatureSchema(name="age", kind="number", dtype="int64")}
    assert (schema.feature("age").missing_rate, schema.feature("age").mean) == (0.0, None)


BAD_FILES = {
    "no TOML": ('label = "port"', "label = port", "is not TOML: Invalid value (at line 4, column 9)"),
    "another format": ("schema/1", "schema/7", "line 3: format is 'estimator-schema/7', but must be"),
    "no such label": (
        'label = "port"',
        'label = "harbour"',
        "line 4: label is 'harbour', but the features are id, age",
    ),
    "unknown key": ("\nmost_missing", "\nmay_miss", "features.id.may_miss is unknown. Known keys: kind, dtype"),
    "unknown table": ("[seen.id]", "[known.id]", "known is unknown. Known keys: format, label, features, seen"),
    "a table of nothing": ("[seen.id]", "[seen.nobody]", "seen.nobody has no matching table [features.nobody]"),
    "kind": ('kind = "number"', 'kind = "digit"', "line 7: features.id.kind is 'digit', but must be one of number,"),
    "a text for a number": (
        "minimum = 1.0",
        'minimum = "one"',
        "features.my list.minimum is 'one', but must be a number",
    ),
    "limits": ("minimum = 1.0", "minimum = 1e9", "features.my list.minimum is 1000000000.0, but maximum is 2.0"),
    "a share": ("most_missing = 0.0", "most_missing = 20", "features.id.most_missing is 20, but must be a share from"),
    "twice": ('    "Q",\n', '    "Q",\n    "Q",\n', "features.port.vocabulary names 'Q' twice"),
    "a number among words": ('    "Q",\n', "    7,\n", "features.port.vocabulary holds 7, but dtype string has values"),
    "size": ('    "*",\n', "    -2,\n", "features.my list.shape is [-2]: sizes are whole numbers, or '*' for any"),
    "no dtype": ('dtype = "int64"\n', "", "line 6: features.id lacks dtype"),
    "a count of nothing": (
        "Q = ",
        'Q = "few" # ',
        "seen.port.counts.Q is 'few', but must be a whole number of at least 0",
    ),
    "negative": ("rows = 200", "rows = -3", "seen.id.rows is -3, but must be a whole number of at least 0"),
    "truth": ("required = true", "required = 1", "features.id.required is 1, but must be true or false"),
}


@pytest.mark.parametrize("case", list(BAD_FILES))
def test_a_file_that_is_none_is_refused_by_line_and_key(tmp_path: Path, case: str) -> None:
    old, new, message = BAD_FILES[case]
    path = tmp_path / "schema.toml"
    full_schema().write(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ArgumentError) as raised:
        Schema.read(path)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{path}")


def test_errors_name_the_line_of_the_key(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    full_schema().write(path)
    lines = path.read_text().splitlines()
    place = lines.index("required = true", lines.index('[features."my list"]'))
    lines[place] = 'required = "perhaps"'
    path.write_text("\n".join(lines))
    with pytest.raises(
        ArgumentError, match=rf"schema\.toml, line {place + 1}: features\.my list\.required is 'perhaps'"
    ):
        Schema.read(path)


def test_what_is_not_there_is_named() -> None:
    schema = learn_schema({"age": [1.0, 2.0], "size": [3.0, 4.0]})
    with pytest.raises(ArgumentError, match=r"The schema has no feature 'agee'\. Similar features: age\."):
        schema.feature("agee")
    with pytest.raises(ArgumentError, match=r"The schema has no feature 'weight'\. Features: age, size\."):
        schema.feature("weight")
    with pytest.raises(ArgumentError, match=r"There is no column 'y'\. Columns: age"):
        learn_schema({"age": [1.0]}, label="y")
    with pytest.raises(ArgumentError, match="There are no rows to learn a schema from"):
        learn_schema({"age": np.zeros(0)})
    with pytest.raises(ArgumentError, match=r"cannot be read: No such file or directory\.$"):
        Schema.read("no-such-schema.toml")
