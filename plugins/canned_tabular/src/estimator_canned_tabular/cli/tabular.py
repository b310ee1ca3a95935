"""Train a model on a CSV or Parquet file: infer columns, train, evaluate, export.

    estimator tabular train --csv people.csv --label income --model dnn_linear_combined --model-dir runs/people
    estimator predict runs/people/export --input people.csv --output scores.csv

The columns are inferred and written to MODEL_DIR/columns.json. To change them, edit that file and pass it with
--columns. Sizes, optimizer and epochs depend on the number of rows. A tenth of the rows is for validation: training
ends when their loss no longer falls. Another tenth is used only for the final test. The result is compared with a
linear model and with the most frequent class. Running the same command again continues an interrupted training. Files
may be larger than memory.
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

#: The wording of readers for programs, and the wording that suits a command line.
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
    data.add_argument("--csv", "--rows", type=Path, required=True, help="rows: CSV with a header, or Parquet")
    data.add_argument("--label", required=True, help="the column to predict")
    data.add_argument("--eval-csv", "--eval-rows", type=Path, help="rows to test (default: every tenth row of --csv)")
    data.add_argument("--columns", type=_here, help="a columns.json (default: inferred)")
    data.add_argument("--weight-column", help="column with the weight of each row")
    data.add_argument(
        "--na-values", default="", metavar="TEXTS", help="comma-separated CSV texts that mean a missing value: NA,?"
    )
    data.add_argument("--field-delim", metavar="CHARACTER", help="column separator (default: a comma; .tsv: a tab)")
    data.add_argument("--missing-category", action="store_true", help="missing words are a separate category")
    data.add_argument(
        "--on-error", choices=("raise", "skip"), default="raise", help="handling of bad rows (default: raise)"
    )
    data.add_argument(
        "--shuffle-rows", type=int, default=50_000, help="size of the shuffle buffer in rows (default: 50000)"
    )
    model = train.add_argument_group("model")
    model.add_argument("--model", choices=MODELS, default="dnn_linear_combined", help="default: dnn_linear_combined")
    model.add_argument("--model-dir", type=_here, required=True, help="directory of the results")
    model.add_argument("--hidden-units", help="hidden layer sizes (default: by number of rows, 128,64 or more)")
    model.add_argument("--dropout", type=float, help="dropout rate (default: 0.1)")
    training = train.add_argument_group("training")
    training.add_argument("--batch-size", type=int, help="rows per step (default: by number of rows, 64 or more)")
    training.add_argument("--epochs", type=int, help="largest number of epochs (default: by number of rows, 20 to 200)")
    training.add_argument(
        "--learning-rate", type=float, help="learning rate of AdamW (default: 0.003; linear models: 0.02)"
    )
    training.add_argument(
        "--weight-decay", type=float, help="weight decay of AdamW (default: 0.01; large tables: 0.0001)"
    )
    training.add_argument(
        "--patience",
        type=int,
        help="number of evaluations without a lower loss that ends training (default: 10); 0: all epochs, "
        "and no validation rows",
    )
    training.add_argument("--seed", type=int, default=0, help="seed of initial values and order (default: 0)")
    training.add_argument("--no-baselines", action="store_true", help="do not train a linear model for comparison")
    training.add_argument("--no-plots", action="store_true", help="do not draw plots of the evaluation")
    training.add_argument(
        "--explain", action="store_true", help="compute the importance of each column (estimator-explain)"
    )
    training.add_argument("--no-export", action="store_true", help="do not export")
    train.add_argument("--json", action="store_true", help="print JSON, and log lines to standard error")


def _here(text: str) -> Path:
    return Path(local_path(text))


def run(args: argparse.Namespace) -> int:
    """Runs the requested steps in order."""
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
    """Replaces the arguments of programs that readers name in messages with the options of the command."""
    try:
        yield
    except (ArgumentError, InputError) as error:
        told = str(error)
        for argument, option in _OPTIONS.items():
            told = told.replace(argument, option)
        if told == str(error):
            raise
        raise type(error)(told) from error
