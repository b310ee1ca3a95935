"""Train a model on a CSV file: infer columns, train, evaluate, export.

    estimator tabular train --csv people.csv --label income --model dnn_linear_combined --model-dir runs/people
    estimator predict runs/people/export --input people.csv --output scores.csv

The columns are inferred and written to MODEL_DIR/columns.json. Edit that file and give it with --columns to decide
otherwise. The same command again goes on where it was stopped. Files may be larger than memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path

MODELS = ("linear", "dnn", "dnn_linear_combined", "dcn", "baseline")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    train = parser.add_subparsers(dest="action", required=True, metavar="train").add_parser(
        "train", help="train, evaluate and export"
    )
    data = train.add_argument_group("data")
    data.add_argument("--csv", type=Path, required=True, help="the rows, with a header")
    data.add_argument("--label", required=True, help="the column to predict")
    data.add_argument("--eval-csv", type=Path, help="rows to evaluate (default: every tenth row of --csv)")
    data.add_argument("--columns", type=Path, help="a columns.json (default: inferred)")
    data.add_argument("--weight-column", help="the column that tells how much a row counts")
    data.add_argument(
        "--on-error", choices=("raise", "skip"), default="raise", help="what becomes of bad rows (default: raise)"
    )
    data.add_argument(
        "--shuffle-rows", type=int, default=50_000, help="neighbouring rows that are mixed, in memory (default: 50000)"
    )
    model = train.add_argument_group("model")
    model.add_argument("--model", choices=MODELS, default="dnn_linear_combined", help="default: dnn_linear_combined")
    model.add_argument("--model-dir", type=Path, required=True, help="where results go")
    model.add_argument("--hidden-units", default="64,32", help="numbers of the hidden layers (default: 64,32)")
    model.add_argument("--dropout", type=float, help="the share of numbers that training leaves out")
    training = train.add_argument_group("training")
    training.add_argument("--batch-size", type=int, default=64, help="default: 64")
    training.add_argument("--epochs", type=int, default=10, help="passes over the rows (default: 10)")
    training.add_argument("--learning-rate", type=float, help="of Adam (default: 0.001; linear models: 0.02)")
    training.add_argument("--seed", type=int, default=0, help="of initial values and order (default: 0)")
    training.add_argument("--no-plots", action="store_true", help="no pictures of the evaluation")
    training.add_argument("--no-export", action="store_true", help="no export")


def run(args: argparse.Namespace) -> int:
    """Does what was asked for, in order."""
    from estimator_canned_tabular.cli.job import Job

    job = Job.of(args)
    job.train()
    job.evaluate()
    if not args.no_export:
        job.export()
    return 0
