"""Tests of inputs of libraries that need a separate environment. The session `input_forms` runs them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.inputs import open_input
from estimator_inputs import learn_schema, table_input_fn

ROWS = pd.DataFrame({"age": [31.0, np.nan, 8.0, 40.0], "port": ["Cork", None, "Cork", "Kiel"], "y": [0, 1, 1, 0]})


def check(table: Any) -> None:
    (batch,) = open_input(table_input_fn(table, 4, shuffle=False, label_name="y"), mode="train")
    assert batch.labels.tolist() == [0, 1, 1, 0]
    np.testing.assert_array_equal(batch.features["age"], np.array([31, np.nan, 8, 40], np.float32))
    assert batch.host["port"].tolist() == [b"Cork", b"", b"Cork", b"Kiel"]


def test_datasets_of_hugging_face() -> None:
    import datasets

    dataset = datasets.Dataset.from_pandas(ROWS)
    check(dataset)
    numbers = dataset.select_columns(["age", "y"])
    batches = list(open_input(lambda: numbers.with_format("numpy").iter(3), mode="train"))
    assert [batch.size for batch in batches] == [3, 1]
    schema = learn_schema(dataset, label="y")
    assert (schema.feature("port").vocabulary, schema.feature("age").missing_rate) == ((), 0.25)
    assert schema.classes == (0, 1)


def test_formats_of_datasets_of_hugging_face() -> None:
    import datasets

    dataset = datasets.Dataset.from_pandas(ROWS)
    (batch,) = table_input_fn(dataset.with_format("numpy", columns=["age"]), 4, shuffle=False)()
    assert list(batch) == list(learn_schema(dataset.with_format("numpy", columns=["age"])).features) == ["age"]
    check(dataset.select([3, 2, 1, 0]).select([3, 2, 1, 0]))
    changed = dataset.with_transform(lambda rows: rows)
    for wrong, message in (
        (changed, "has a transform"),
        (datasets.DatasetDict({"train": dataset}), "got DatasetDict. Choose a split"),
        (dataset.to_iterable_dataset(), "got IterableDataset. Pass its batches as an input_fn"),
    ):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
            table_input_fn(wrong, 4, shuffle=False)


def test_adbc() -> None:
    import adbc_driver_sqlite.dbapi as adbc

    with adbc.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create table people (age real, port text, y integer)")
        values = ROWS.astype(object).where(ROWS.notna(), None).to_numpy().tolist()
        for row in values:
            cursor.execute("insert into people values (?, ?, ?)", row)
        cursor.execute("select * from people")
        check(cursor.fetch_arrow_table())


def test_sqlalchemy(tmp_path: Path) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/people.db")
    ROWS.to_sql("people", engine, index=False)
    check(pd.read_sql("select * from people", engine))
    engine.dispose()


def test_duckdb() -> None:
    import duckdb

    rows = ROWS
    relation = duckdb.sql("select * from rows")
    check(relation)
    assert learn_schema(relation).feature("age").missing_rate == 0.25
    assert len(rows) == 4
