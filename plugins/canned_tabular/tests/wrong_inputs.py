"""Wrong inputs: the faults, their places, and the input functions that read them."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_core import export
from estimator_inputs import csv_input_fn, pandas_input_fn, parquet_input_fn, tfrecord_input_fn, write_tfrecord

Row = dict[str, Any]
ROWS, WRONG = 8, 5
ABSENT = object()
COLUMNS = [
    tab.numeric_column("age"),
    tab.categorical_column_with_vocabulary_list("city", ["Rome", "Oslo"]),
]
#: The faults by name: the column, and its value in row 5. ABSENT removes the whole column.
FAULTS: dict[str, tuple[str, Any]] = {
    "a number is missing": ("age", None),
    "a number is infinite": ("age", float("inf")),
    "a number is a text": ("age", "forty"),
    "a number is a date": ("age", datetime.datetime(2024, 1, 31)),  # noqa: DTZ001
    "a number is a list": ("age", [40.0, 41.0]),
    "a column is absent": ("age", ABSENT),
    "a word is a number": ("city", 3.5),
    "a label is missing": ("income", None),
    "a label is not a class": ("income", "hihg"),
    "a weight is negative": ("share", -2.0),
    "a weight is missing": ("share", None),
}


def table(fault: str | None = None) -> list[Row]:
    """Returns eight rows, one of which has the fault."""
    cities = ["Rome", "Oslo"]
    rows: list[Row] = [
        {"age": 30.0 + n, "city": cities[n % 2], "income": ["low", "high"][n % 2], "share": 1.0} for n in range(ROWS)
    ]
    if fault is not None:
        column, value = FAULTS[fault]
        for row in rows if value is ABSENT else rows[WRONG : WRONG + 1]:
            row[column] = value
    return [{name: value for name, value in row.items() if value is not ABSENT} for row in rows]


def columns_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def as_array(values: Sequence[Any]) -> np.ndarray:
    """The array that a user makes of a list: floats if all are floats, objects if they are mixed."""
    if all(isinstance(value, float) for value in values):
        return np.array(values, np.float32)
    if all(isinstance(value, str) for value in values):
        return np.array(values)
    made = np.empty(len(values), object)
    made[:] = values
    return made


def from_frame(rows: Sequence[Row], folder: Path) -> Any:
    import pandas as pd

    frame = pd.DataFrame(columns_of(rows))
    return pandas_input_fn(frame.drop(columns="income"), frame["income"], ROWS, shuffle=False)


def from_dict(rows: Sequence[Row], folder: Path) -> Any:
    arrays = {name: as_array(values) for name, values in columns_of(rows).items()}
    labels = arrays.pop("income")
    return ec.inputs.numpy_input_fn(arrays, labels, ROWS, shuffle=False)


def from_csv(rows: Sequence[Row], folder: Path) -> Any:
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(list(rows[0]))
        writer.writerows(row.values() for row in rows)
    words = tab.strict_vocabularies(COLUMNS)  # 3.5 is a word in a CSV file
    return csv_input_fn(path, ROWS, shuffle=False, label_name="income", vocabularies=words)


def from_parquet(rows: Sequence[Row], folder: Path) -> Any:
    """Columns have one type. If one value is a date or a list, all are. If one is a text, numbers become texts."""
    import pyarrow as pa
    import pyarrow.parquet

    made: dict[str, Any] = {}
    for name, values in columns_of(rows).items():
        odd = values[WRONG]
        if isinstance(odd, datetime.datetime):
            values = [odd] * len(values)
        elif isinstance(odd, list):
            values = [value if isinstance(value, list) else [value] for value in values]
        elif isinstance(odd, str):
            values = [str(value) for value in values]
        elif isinstance(odd, float) and isinstance(values[0], str):
            values = [odd] * len(values)
        made[name] = pa.array(values)
    path = folder / "rows.parquet"
    pyarrow.parquet.write_table(pa.table(made), path)
    return parquet_input_fn(path, ROWS, shuffle=False, label_name="income")


def from_tfrecord(rows: Sequence[Row], folder: Path) -> Any:
    """Missing values are left out of their record. Dates are texts."""
    path = folder / "rows.tfrecord"
    write_tfrecord(str(path), [_example(row) for row in rows])
    spec = {
        "age": export.FixedLenFeature((), "float32"),
        "city": export.FixedLenFeature((), "string"),
        "income": export.FixedLenFeature((), "string"),
        "share": export.FixedLenFeature((), "float32"),
    }
    return tfrecord_input_fn(path, ROWS, spec, shuffle=False, label_key="income")


def _example(row: Row) -> bytes:
    message = export.example_class()()
    for name, value in row.items():
        feature = message.features.feature[name]
        values = value if isinstance(value, list) else [value]
        if value is None:
            message.features.feature.pop(name)
        elif isinstance(value, (str, datetime.datetime)):
            feature.bytes_list.value.extend(str(one).encode() for one in values)
        else:
            feature.float_list.value.extend(values)
    return message.SerializeToString()


#: The functions that read the rows for training.
DOORS: dict[str, Callable[[Sequence[Row], Path], Any]] = {
    "DataFrame": from_frame,
    "dict": from_dict,
    "CSV": from_csv,
    "Parquet": from_parquet,
    "TFRecord": from_tfrecord,
}


def estimator(folder: Path) -> ec.Estimator:
    """An estimator that reads all four columns."""
    return tab.LinearClassifier(
        COLUMNS,
        str(folder / "model"),
        label_vocabulary=["high", "low"],
        weight_column="share",
        config=ec.RunConfig(tf_random_seed=0),
    )


#: The possible faults of a request, which has no labels and weights.
OF_REQUESTS = [fault for fault, (column, _) in FAULTS.items() if column in ("age", "city")]


def request(fault: str) -> bytes:
    """A request for the predictions of the rows."""
    rows = [{name: value for name, value in row.items() if name in ("age", "city")} for row in table(fault)]
    return json.dumps({"instances": rows}, default=str).encode()


REQUEST = "request"
CASES = [(fault, door) for fault in FAULTS for door in DOORS] + [(fault, REQUEST) for fault in OF_REQUESTS]
PAGE = Path(__file__).parents[3] / "docs" / "wrong_inputs.md"


def line(fault: str, door: str, message: str, folder: Path) -> str:
    """A line of the page: the message for the user of an input function."""
    told = message.replace(f"{folder}/", "").replace("|", "\\|")
    return f"| {door} | {told} |"


def page(messages: Mapping[tuple[str, str], str]) -> str:
    """The page, from the lines of all cases."""
    parts = [PAGE.read_text().split("\n## ")[0].rstrip() + "\n"]
    for fault, (column, value) in FAULTS.items():
        what = "no such column" if value is ABSENT else f"`{value!r}`"
        shown = [messages[fault, door] for door in (*DOORS, REQUEST) if (fault, door) in messages]
        parts.append(
            f"## {fault.capitalize()}\n\n`{column}`: {what}\n\n| input | message |\n|---|---|\n"
            + "\n".join(shown)
            + "\n"
        )
    return "\n".join(parts)
