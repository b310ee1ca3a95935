"""Writes the table of `file_to_model.py`: the same rows as CSV and as TFRecords of tf.Examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _ads import DEVICES, NUMBERS, SITES

import estimator_core as ec
from estimator_inputs import write_tfrecord


def write_table(folder: Path, name: str, rows: int, seed: int) -> None:
    """Writes `name.csv` and `name.tfrecord`, unless they exist."""
    from pyarrow import csv

    if (folder / f"{name}.tfrecord").exists():
        return
    table = made(rows, seed)
    csv.write_csv(table, folder / f"{name}.csv", csv.WriteOptions(quoting_style="none"))
    write_tfrecord(folder / f"{name}.part", records(table))
    (folder / f"{name}.part").rename(folder / f"{name}.tfrecord")


def made(rows: int, seed: int) -> Any:
    """Returns the rows. Clicks depend on numbers, age, site and user, and on the pair of site and device."""
    import pyarrow as pa

    taste = np.random.default_rng(7)  # the same in every table
    of_site, of_pair = taste.normal(size=len(SITES)), taste.normal(size=(len(SITES), len(DEVICES)))
    of_user = taste.normal(size=100_000)
    draw = np.random.default_rng(seed)
    numbers = {name: draw.normal(size=rows).round(4).astype(np.float32) for name in NUMBERS}
    age = draw.integers(13, 90, rows)
    site = np.minimum(draw.geometric(0.06, rows) - 1, len(SITES) - 1)
    device = draw.integers(0, len(DEVICES), rows)
    user = (len(of_user) * draw.random(rows) ** 3).astype(np.int64)
    logit = numbers["price"] - 0.5 * numbers["clicks"] + (np.abs(age - 40) < 12) + of_site[site] + of_user[user]
    clicked = draw.random(rows) < 1 / (1 + np.exp(-(logit + of_pair[site, device] - 1)))
    words = {
        "site": np.array(SITES)[site],
        "device": np.array(DEVICES)[device],
        "user": [f"u{number:07x}" for number in user * 2_654_435_761 % 2**28],
    }
    return pa.table({**numbers, "age": age, **words, "label": clicked.astype(np.int64)})


def records(table: Any) -> Iterator[bytes]:
    """Yields a tf.Example for each row."""
    example = ec.export.example_class()
    for row in table.to_pylist():
        feature = (message := example()).features.feature
        for name in NUMBERS:
            feature[name].float_list.value.append(row[name])
        for name in ("age", "label"):
            feature[name].int64_list.value.append(row[name])
        for name in ("site", "device", "user"):
            feature[name].bytes_list.value.append(row[name].encode())
        yield message.SerializeToString()
