"""From a file with texts to a trained model: wide and deep over an ads-like table, batches of 512, one pass.

    uv run python benchmarks/file_to_model.py [--rows 1000448] [--rounds 9] [--kinds csv tfrecord] [--tf-python PYTHON]
        [--torch-python PYTHON] [--keras-python PYTHON] [--trees-python PYTHON] [--row-by-row] [--new-processes]
        [--folder FOLDER] [--json FILE]

Every contestant reads the same file in its order, in a process that has finished its imports. It begins with a new
model: the time runs from opening the file to the last step, including the start of the pass (graph, trace,
compilation). For the last three quarters of a pass, in which nothing starts, the notes state the rows per second. They
also state the processor time and the loss on held-out rows. PYTHON for Keras has keras 3, jax and tensorflow, because
its FeatureSpace needs tf.data for texts. PYTHON for trees has xgboost, lightgbm and pandas. All use Adagrad for the
linear part and the deep part. A peer without an interpreter is skipped by name. With --new-processes each round is the
first pass of a process. A later pass in the same process may be faster (compiled programs are kept) or slower
(tf.data). The number of rows should be a multiple of 512, because a shorter last batch is one more program to compile.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _ads
import numpy as np
from _ads_files import write_table
from _finished import Finished
from _peers import peer
from _report import report, write
from _side_by_side import compare, compared

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_inputs import csv_input_fn, tfrecord_input_fn

KINDS = ("csv", "tfrecord")
TARGETS: dict[str, dict[str, float]] = {
    "tf.estimator": {"csv": 5.0, "tfrecord": 3.0},
    "Keras": dict.fromkeys(KINDS, 2.0),
    "PyTorch": {"csv": 2.0},
}


class Later(ec.Hook):
    """Records the time at which the steps before the later part have been computed."""

    def __init__(self, noted: _ads.Pass, step: int) -> None:
        self._noted, self._step = noted, step

    def next_step(self, step: int) -> int | None:
        return self._step if step < self._step else None

    def after_step(self, run: ec.Run, step: int, out: ec.StepOutputs) -> None:
        float(out["loss"])
        self._noted.later()


def classifier() -> ec.Estimator:
    """Returns a new wide-and-deep model in a new directory."""
    ages = tab.bucketized_column(tab.numeric_column("age"), list(_ads.AGES))
    site = tab.categorical_column_with_vocabulary_list("site", list(_ads.SITES), num_oov_buckets=1)
    device = tab.categorical_column_with_vocabulary_list("device", list(_ads.DEVICES))
    user = tab.categorical_column_with_hash_bucket("user", _ads.USER_BUCKETS)
    deep = [tab.numeric_column(name) for name in _ads.NUMBERS]
    tables = [tab.embedding_column(site, _ads.SITE_WIDTH), tab.embedding_column(user, _ads.USER_WIDTH)]
    adagrad = tab.choose_optimizer("Adagrad", _ads.RATE).transformation
    return tab.DNNLinearCombinedClassifier(
        linear_feature_columns=[ages, site, user, tab.crossed_column(["site", "device"], _ads.CROSS_BUCKETS)],
        linear_optimizer=adagrad,
        dnn_feature_columns=[*deep, *tables, tab.indicator_column(device)],
        dnn_optimizer=adagrad,
        dnn_hidden_units=list(_ads.HIDDEN),
        config=ec.RunConfig(
            model_dir=tempfile.mkdtemp(prefix="bench-ads-"),
            tf_random_seed=1,
            save_checkpoints_steps=None,
            save_checkpoints_secs=None,
        ),
    )


def input_of(kind: str, path: Path) -> Any:
    """Returns one pass in the order of the file."""
    if kind == "csv":
        return csv_input_fn(str(path), _ads.BATCH, shuffle=False, label_name="label")
    spec = {name: ec.export.FixedLenFeature((), "float32") for name in _ads.NUMBERS}
    spec |= {name: ec.export.FixedLenFeature((), "int64") for name in ("age", "label")}
    spec |= {name: ec.export.FixedLenFeature((), "string") for name in ("site", "device", "user")}
    return tfrecord_input_fn(str(path), _ads.BATCH, spec, shuffle=False, label_key="label")


def ours(kind: str, folder: Path, rows: int, result: Path) -> Callable[[], None]:
    """Returns the framework in this process."""

    def run() -> None:
        noted = _ads.Pass()
        estimator = classifier()
        hooks = [Later(noted, _ads.later_step(rows)), Finished()]
        estimator.train(input_of(kind, folder / f"train.{kind}"), hooks=hooks)
        figures = noted.end(rows)
        held_out = input_of(kind, folder / f"held_out.{kind}")
        _ads.answer(result, figures, lambda: float(estimator.evaluate(held_out)["average_loss"]))
        shutil.rmtree(estimator.model_dir)

    return run


def contestants_of(kind: str, folder: Path, args: argparse.Namespace) -> dict[str, Callable[[], None]]:
    """Returns the functions that run once per round, by name."""
    peers = {
        "tf.estimator": (args.tf_python, "tensorflow", "_ads_tf.py", kind),
        "Keras": (args.keras_python, "keras", "_ads_keras.py", kind),
    }
    if kind == "csv":
        peers["PyTorch"] = (args.torch_python, "torch", "_ads_torch.py", "chunks")
        peers["XGBoost"] = (args.trees_python, "xgboost", "_ads_trees.py", "xgboost")
        peers["LightGBM"] = (args.trees_python, "lightgbm", "_ads_trees.py", "lightgbm")
        if args.row_by_row:
            peers["PyTorch, row by row"] = (args.torch_python, "torch", "_ads_torch.py", "rows")
    name = f"estimator, {kind}"
    found = {name: ours(kind, folder, args.rows, folder / f"{name}.jsonl")}
    if args.new_processes:
        found = {name: process(sys.executable, "_ads_ours.py", kind, folder, name, kind, args)}
    for name, (python, needs, script, how) in peers.items():
        label = f"{name}, {kind}"
        if python is not None and args.new_processes:
            found[label] = process(python, script, how, folder, label, kind, args)
        else:
            found |= peer(label, python, script, how, needs=needs, **arguments_of(kind, folder, label, args))
    return found


def arguments_of(kind: str, folder: Path, name: str, args: argparse.Namespace) -> dict[str, object]:
    """Returns the arguments for the process of a contestant."""
    files = {"train": folder / f"train.{kind}", "held_out": folder / f"held_out.{kind}"}
    return {**files, "rows": args.rows, "result": folder / f"{name}.jsonl"}


def process(
    python: str, script: str, how: str, folder: Path, name: str, kind: str, args: argparse.Namespace
) -> Callable[[], None]:
    """Returns a new process for each round, which finishes its imports before its time begins."""

    def run() -> None:
        given = [f"{key}={value}" for key, value in arguments_of(kind, folder, name, args).items()]
        command = [python, str(Path(__file__).with_name(script)), how, *given]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run(command, input="go\n", text=True, check=True, capture_output=True, env=quiet)

    return run


def noted_in(folder: Path, name: str) -> list[dict[str, float]]:
    """Returns the rounds of a contestant."""
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def notes_of(folder: Path, names: list[str], warm_up: int) -> list[str]:
    """Returns the records of each contestant: medians over the rounds that count."""
    lines: list[str] = []
    for name in names:
        found = noted_in(folder, name)[warm_up:]
        middle = {key: float(np.median([line[key] for line in found])) for key in found[0]}
        lines.append(
            f"{name}: whole {middle['seconds']:.2f} s, processor {middle['cpu']:.2f} s, later part "
            f"{middle['later']:,.0f} rows/s, held-out loss {middle['loss']:.4f}"
        )
    return lines


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_448)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warm-up", type=int, default=1, help="rounds before the measured ones")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--tf-python")
    parser.add_argument("--torch-python")
    parser.add_argument("--keras-python")
    parser.add_argument("--trees-python")
    parser.add_argument("--new-processes", action="store_true", help="a process for each contestant and round")
    parser.add_argument("--row-by-row", action="store_true", help="also PyTorch with the module csv")
    parser.add_argument("--folder", type=Path, help="folder of the files (default: a temporary folder)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-ads-files-") as temporary:
        folder: Path = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.jsonl"):
            old.unlink()
        write_table(folder, "train", args.rows, seed=0)
        write_table(folder, "held_out", max(args.rows // 10, 1), seed=1)
        tables = [measured(kind, folder, args) for kind in args.kinds]
    write(args.json, *tables)


def measured(kind: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Measures one kind of file."""
    contestants = contestants_of(kind, folder, args)
    name, *others = contestants
    pairs = [(name, other) for other in others]
    compare(contestants, rounds=args.rounds, warm_up=args.warm_up)
    seconds = {each: [line["seconds"] for line in noted_in(folder, each)[args.warm_up :]] for each in contestants}
    results = [compared(seconds, *pair) for pair in pairs]
    targets = {(name, f"{other}, {kind}"): wanted[kind] for other, wanted in TARGETS.items() if kind in wanted}
    title = f"From a file to a trained model: {args.rows:,} rows of {kind}, wide and deep, batch {_ads.BATCH}"
    notes = notes_of(folder, list(contestants), args.warm_up)
    return report(title, results, steps=-(-args.rows // _ads.BATCH), rows=args.rows, targets=targets, notes=notes)


if __name__ == "__main__":
    main()
