"""Train a model on a CSV or Parquet file: infer columns, train, evaluate, export.

    estimator tabular train --csv people.csv --label income --model dnn_linear_combined --model-dir runs/people
    estimator predict runs/people/export --input people.csv --output scores.csv

The columns are inferred and written to MODEL_DIR/columns.json. Edit that file and pass it with --columns to decide
otherwise. Sizes, optimizer and epochs suit the number of rows. Training ends when the loss of the validation rows, a
tenth, no longer falls. Another tenth is the test, which nothing sees before. A linear model and the most frequent class
are shown beside the result. The same command continues an interrupted training. Files may be larger than memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Generator
from pathlib import Path

from estimator_core.cli import local_path
from estimator_core.errors import ArgumentError, InputError

#: What readers tell programs, and what a command line has instead.
_OPTIONS = {
    'on_error="skip"': "--on-error skip",
    "no value, and no default (column_defaults)": "no value",
    "field_delim must": "--field-delim must",
    "; if the number is right, read the column as 'float32' (column_types)": "",
}
MODELS = ("linear", "dnn", "dnn_linear_combined", "dcn", "baseline")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    train = parser.add_subparsers(dest="action", required=True, metavar="train").add_parser(
        "train", help="train, evaluate and export"
    )
    data = train.add_argument_group("data")
    data.add_argument("--csv", "--rows", type=Path, required=True, help="the rows: CSV with a header, or Parquet")
    data.add_argument("--label", required=True, help="the column to predict")
    data.add_argument("--eval-csv", "--eval-rows", type=Path, help="rows to test (default: every tenth row of --csv)")
    data.add_argument("--columns", type=_here, help="a columns.json (default: inferred)")
    data.add_argument("--weight-column", help="the column that tells how much a row counts")
    data.add_argument(
        "--na-values", default="", metavar="TEXTS", help="texts of CSV that mean no value, with commas between: NA,?"
    )
    data.add_argument("--field-delim", metavar="CHARACTER", help="between columns (default: a comma; .tsv: a tab)")
    data.add_argument("--missing-category", action="store_true", help="rows without a word are a category of their own")
    data.add_argument(
        "--on-error", choices=("raise", "skip"), default="raise", help="what becomes of bad rows (default: raise)"
    )
    data.add_argument(
        "--shuffle-rows", type=int, default=50_000, help="neighbouring rows that are mixed, in memory (default: 50000)"
    )
    model = train.add_argument_group("model")
    model.add_argument("--model", choices=MODELS, default="dnn_linear_combined", help="default: dnn_linear_combined")
    model.add_argument("--model-dir", type=_here, required=True, help="where results go")
    model.add_argument("--hidden-units", help="numbers of the hidden layers (default: by rows, 128,64 or more)")
    model.add_argument("--dropout", type=float, help="the share of numbers that training leaves out (default: 0.1)")
    training = train.add_argument_group("training")
    training.add_argument("--batch-size", type=int, help="rows a step (default: by rows, 64 or more)")
    training.add_argument("--epochs", type=int, help="most passes over the rows (default: by rows, 20 to 200)")
    training.add_argument("--learning-rate", type=float, help="of AdamW (default: 0.003; linear models: 0.02)")
    training.add_argument("--weight-decay", type=float, help="of AdamW (default: 0.01; large tables: 0.0001)")
    training.add_argument(
        "--patience",
        type=int,
        help="evaluations in a row without a lower loss before training ends (default: 10); 0: all epochs, "
        "and no validation rows",
    )
    training.add_argument("--seed", type=int, default=0, help="of initial values and order (default: 0)")
    training.add_argument("--no-baselines", action="store_true", help="no linear model beside it")
    training.add_argument("--no-plots", action="store_true", help="no pictures of the evaluation")
    training.add_argument("--explain", action="store_true", help="importance of each column (estimator-explain)")
    training.add_argument("--no-export", action="store_true", help="no export")
    train.add_argument("--json", action="store_true", help="print JSON, and the lines to standard error")


def _here(text: str) -> Path:
    return Path(local_path(text))


def run(args: argparse.Namespace) -> int:
    """Does what was asked for, in order."""
    from estimator_canned_tabular.cli.job import Job

    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext(), _told_for_commands():
        job = Job.of(args)
        found = {"model_dir": str(args.model_dir), **job.train(), **job.evaluate()}
        if args.explain:
            found |= job.explain()
        if not args.no_export:
            found |= job.export()
    if args.json:
        print(json.dumps(found))
    return 0


@contextlib.contextmanager
def _told_for_commands() -> Generator[None]:
    """Messages name options of the command where readers of files name arguments of programs."""
    try:
        yield
    except (ArgumentError, InputError) as error:
        told = str(error)
        for argument, option in _OPTIONS.items():
            told = told.replace(argument, option)
        if told == str(error):
            raise
        raise type(error)(told) from error
