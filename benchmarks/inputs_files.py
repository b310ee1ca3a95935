"""Rows per second from CSV, Parquet and TFRecord files: estimator-inputs, and tf.data in a separate environment.

uv run python benchmarks/inputs_files.py --tf-python PYTHON [--rows 1000000] [--rounds 5] [--kinds csv]

PYTHON is the interpreter of an environment with tensorflow 2.15 or 2.21. Without it only our inputs run. Both read the
same files: 8 floats, 4 integers, 2 strings and a label in 4 files of each kind, batches of 512.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _peers import peer
from _report import report, write
from _side_by_side import compare

BATCH, PARTS = 512, 4
KINDS = ("csv", "tfrecord", "parquet")
ORDERS = ("shuffled", "in order")
NUMBERS = [f"f{i}" for i in range(8)]
COUNTS = [f"i{i}" for i in range(4)]
WORDS = [f"s{i}" for i in range(2)]
TARGETS = {"csv": 1.5, "tfrecord": 1.0}


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=list(ORDERS))
    parser.add_argument("--warm-up", type=int, default=1, help="rounds before the measured ones")
    parser.add_argument("--tf-python")
    parser.add_argument("--folder", type=Path, help="folder of the files (default: a temporary folder)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp())
    try:
        write_files(folder, args.rows)
        measure(folder, args)
    finally:
        if args.folder is None:
            shutil.rmtree(folder)


def measure(folder: Path, args: argparse.Namespace) -> None:
    """Runs alternating rounds, ours against tf.data for each kind of file, shuffled and not."""
    contestants: dict[str, Callable[[], None]] = {}
    pairs: list[tuple[str, str]] = []
    targets: dict[tuple[str, str], float] = {}
    for how in args.orders:
        for kind in args.kinds:
            name, shuffle = f"{kind}, {how}", how == "shuffled"
            contestants[name] = ours(folder, kind, shuffle, args.rows)
            theirs = {} if kind == "parquet" else tf_data(args.tf_python, folder, kind, shuffle, args.rows)
            for run in theirs.values():
                contestants[f"tf.data {name}"] = run
                pairs.append((name, f"tf.data {name}"))
                targets[name, f"tf.data {name}"] = TARGETS[kind]
            if not theirs:
                pairs.append((name, next(iter(contestants))))
    pairs = [pair for pair in pairs if len(set(pair)) == 2]
    results = compare(contestants, rounds=args.rounds, warm_up=args.warm_up, pairs=pairs)
    title, steps = f"{args.rows:,} rows of 15 columns", args.rows // BATCH
    write(args.json, report(title, results, steps=steps, rows=args.rows, targets=targets))


def ours(folder: Path, kind: str, shuffle: bool, rows: int) -> Callable[[], None]:
    """Returns one epoch through the input of a kind, with counted rows."""
    import estimator_inputs as inputs

    pattern = f"{folder}/*.{kind}"

    def make() -> Any:
        if kind == "tfrecord":
            return inputs.tfrecord_input_fn(pattern, BATCH, features(), label_key="label", shuffle=shuffle)
        function = {"csv": inputs.csv_input_fn, "parquet": inputs.parquet_input_fn}[kind]
        return function(pattern, BATCH, label_name="label", shuffle=shuffle)

    def run() -> None:
        read = sum(len(labels) for _, labels in make()())
        assert read == rows, (read, rows)

    return run


def tf_data(python: str | None, folder: Path, kind: str, shuffle: bool, rows: int) -> dict[str, Callable[[], None]]:
    """Returns the same through tf.data, in a separate process."""
    arguments: dict[str, object] = {"folder": folder, "shuffle": int(shuffle), "rows": rows, "batch": BATCH}
    return peer("tf.data", python, "_tf_data.py", kind, needs="tensorflow", **arguments)


def features() -> dict[str, Any]:
    from estimator_core import export

    spec = {name: export.FixedLenFeature((), "float32") for name in NUMBERS}
    spec |= {name: export.FixedLenFeature((), "int64") for name in [*COUNTS, "label"]}
    return spec | {name: export.FixedLenFeature((), "string") for name in WORDS}


def write_files(folder: Path, rows: int) -> None:
    """Writes the files, unless they exist."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from estimator_core import export
    from estimator_inputs import write_tfrecord

    if len(list(folder.glob("*.tfrecord"))) == PARTS:
        return
    began = time.perf_counter()
    generator = np.random.default_rng(0)
    for part in range(PARTS):
        n = rows // PARTS + (part < rows % PARTS)
        columns: dict[str, Any] = {name: generator.normal(size=n).astype(np.float32) for name in NUMBERS}
        columns |= {name: generator.integers(0, 100_000, n) for name in COUNTS}
        columns |= {name: [f"word{k}" for k in generator.integers(0, 1000, n)] for name in WORDS}
        columns["label"] = generator.integers(0, 2, n)
        table = pa.table(columns)
        csv.write_csv(table, folder / f"part-{part}.csv", csv.WriteOptions(quoting_style="none"))
        parquet.write_table(table, folder / f"part-{part}.parquet", row_group_size=65_536)

        def records(table: Any = table) -> Any:
            message = export.example_class()
            for row in table.to_pylist():
                feature = (one := message()).features.feature
                for name in NUMBERS:
                    feature[name].float_list.value.append(row[name])
                for name in [*COUNTS, "label"]:
                    feature[name].int64_list.value.append(row[name])
                for name in WORDS:
                    feature[name].bytes_list.value.append(row[name].encode())
                yield one.SerializeToString()

        write_tfrecord(folder / f"part-{part}.tfrecord", records())
    print(f"wrote {rows:,} rows in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
