"""Tests of models of estimator-canned-tabular on files of estimator-inputs: the weights are the same after kills, with
each format.
"""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec

pytestmark = pytest.mark.plugins

WORKER = Path(__file__).with_name("train_from_csv.py")
ROWS, FILES = 210, 3


def rows() -> list[dict[str, Any]]:
    generator = np.random.default_rng(0)
    kinds = generator.choice(["ape", "bee", "cat", "dog", "eel"], ROWS)
    size, weight = generator.normal(size=(2, ROWS)).astype(np.float32)
    label = (size + (kinds == "cat") > 0).astype(int)
    return [
        {"kind": str(k), "size": float(s), "weight": float(w), "label": int(y)}
        for k, s, w, y in zip(kinds, size, weight, label, strict=True)
    ]


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("rows")
    for number in range(FILES):
        with open(folder / f"part-{number}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, ["kind", "size", "weight", "label"])
            writer.writeheader()
            writer.writerows(rows()[number::FILES])
    return str(folder / "part-*.csv")


def run(pattern: str, model_dir: Path, kill_at: int = 0) -> int:
    command = [sys.executable, str(WORKER), pattern, str(model_dir), str(kill_at)]
    return subprocess.run(command, check=False, env={**os.environ, "JAX_PLATFORMS": "cpu"}).returncode


def weights(model_dir: Path) -> dict[str, bytes]:
    latest = ec.latest_checkpoint(str(model_dir))
    assert latest is not None
    assert latest.endswith("/48")
    return {name: value.tobytes() for name, value in ec.load_variables(str(model_dir)).items()}


@pytest.mark.slow
def test_killed_in_the_middle_of_epochs_it_ends_with_the_same_weights(tmp_path: Path, pattern: str) -> None:
    assert run(pattern, tmp_path / "whole") == 0
    for kill_at in sorted(random.sample(range(2, 47), 2)):  # an epoch has 13.1 batches
        assert run(pattern, tmp_path / "killed", kill_at) == -signal.SIGKILL
    assert run(pattern, tmp_path / "killed") == 0
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")


def test_csv_parquet_and_tfrecord_give_the_same_weights(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    from estimator_canned_tabular import LinearClassifier, categorical_column_with_vocabulary_list, numeric_column
    from estimator_inputs import csv_input_fn, make_batched_features_dataset, parquet_input_fn, write_tfrecord

    with open(tmp_path / "rows.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["kind", "size", "weight", "label"])
        writer.writeheader()
        writer.writerows(rows())
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows()), tmp_path / "rows.parquet")
    write_tfrecord(tmp_path / "rows.tfrecord", map(serialized, rows()))
    spec = {
        "kind": ec.export.FixedLenFeature((), "string"),
        "size": ec.export.FixedLenFeature((), "float32"),
        "weight": ec.export.FixedLenFeature((), "float32"),
        "label": ec.export.FixedLenFeature((), "int64"),
    }
    inputs = {
        "csv": csv_input_fn(str(tmp_path / "rows.csv"), 30, shuffle=True, seed=4, num_epochs=3, label_name="label"),
        "parquet": parquet_input_fn(
            str(tmp_path / "rows.parquet"), 30, shuffle=True, seed=4, num_epochs=3, label_name="label"
        ),
        "tfrecord": make_batched_features_dataset(
            str(tmp_path / "rows.tfrecord"), 30, spec, label_key="label", shuffle=True, shuffle_seed=4, num_epochs=3
        ),
    }
    found: dict[str, Any] = {}
    for kind, input_fn in inputs.items():
        columns = [
            categorical_column_with_vocabulary_list("kind", ["ape", "bee", "cat"], num_oov_buckets=2),
            numeric_column("size"),
            numeric_column("weight"),
        ]
        estimator = LinearClassifier(columns, config=ec.RunConfig(model_dir=str(tmp_path / kind), tf_random_seed=1))
        estimator.train(input_fn)
        found[kind] = {name: value.tobytes() for name, value in estimator.variables.items()}
        assert estimator.latest_checkpoint().endswith("/21")
    assert found["csv"] == found["parquet"] == found["tfrecord"]


def serialized(row: dict[str, Any]) -> bytes:
    message = ec.export.example_class()()
    message.features.feature["kind"].bytes_list.value.append(row["kind"].encode())
    message.features.feature["label"].int64_list.value.append(row["label"])
    for name in ("size", "weight"):
        message.features.feature[name].float_list.value.append(row[name])
    return message.SerializeToString()
