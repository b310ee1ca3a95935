"""Examine data: show statistics, learn a schema, and check other data against it.

Example:
    estimator inputs inspect train.csv
    estimator inputs inspect 'data/part-*.tfrecord' --rows 2 --html statistics.html
    estimator inputs schema train.csv --label survived --output schema.toml
    estimator inputs validate new.parquet --schema schema.toml
    estimator inputs validate serving.jsonl --against train.csv --no-label

`schema` writes a file that you can edit. `validate` shows violations (exit code 3) and the drift of each column, as
Jensen-Shannon and L-infinity distances. Bad rows are counted and shown.
"""

from __future__ import annotations

import argparse

from estimator_core.cli import local_path, page_path

_KINDS = ("csv", "jsonl", "parquet", "tfrecord", "array_record")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = _action(actions, "inspect", "statistics, histograms and a few rows of files")
    inspect.add_argument("--rows", type=int, default=5, help="rows to show (default: 5)")
    inspect.add_argument("--limit", type=int, default=100_000, help="rows to read (default: 100000)")
    inspect.add_argument("--all", action="store_true", help="read all rows")
    inspect.add_argument("--html", metavar="PAGE", type=page_path, help="also write a page with histograms")
    inspect.add_argument("--json", action="store_true", help="print JSON")
    schema = _action(actions, "schema", "learn a schema, in one pass over all rows")
    schema.add_argument("--label", help="the column that is the label")
    schema.add_argument("--limit", type=int, help="rows to read (default: all)")
    schema.add_argument("--output", metavar="SCHEMA", type=local_path, help="the file to write (default: print it)")
    schema.add_argument("--force", action="store_true", help="overwrite an existing file")
    schema.add_argument(
        "--json", action="store_true", help="print JSON: the path, the label, and the kind of each column"
    )
    validate = _action(actions, "validate", "compare files with a schema, or with other files; exit code 3: anomalies")
    validate.add_argument("--schema", metavar="SCHEMA", type=local_path, help="a schema file")
    validate.add_argument(
        "--against", metavar="FILE", nargs="+", help="files to compare with, such as those of training"
    )
    validate.add_argument("--label", help="the label in the files of --against")
    validate.add_argument("--no-label", action="store_true", help="the label may be missing, as in rows to predict")
    validate.add_argument("--ignore", default="", metavar="NAMES", help="comma-separated columns to ignore")
    validate.add_argument("--limit", type=int, help="rows to read (default: all)")
    shares = (
        ("jensen-shannon", 0.2, "distance to the values seen"),
        ("l-infinity", 0.2, "difference between the fractions of one value"),
        ("outside", 0.0, "fraction of the numbers of a column outside minimum and maximum"),
        ("unknown", 0.0, "fraction of the values of a column that are not in its vocabulary"),
        ("bad-rows", 0.0, "fraction of bad rows"),
    )
    for name, default, what in shares:
        validate.add_argument(f"--max-{name}", type=float, default=default, help=f"{what} (default: {default:g})")
    validate.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Runs the chosen action."""
    from estimator_core.errors import ArgumentError
    from estimator_inputs.cli import actions

    if args.limit is not None and args.limit < 1:
        raise ArgumentError(f"--limit must be at least 1, given: {args.limit}.")
    return {"inspect": actions.inspect, "schema": actions.schema, "validate": actions.validate_files}[args.action](args)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],  # pyright: ignore[reportPrivateUsage]
    name: str,
    text: str,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text)
    parser.add_argument("files", nargs="+", metavar="FILE", help="files or patterns of the same kind")
    parser.add_argument("--kind", choices=_KINDS, help="kind of the files (default: from their names or first bytes)")
    parser.add_argument(
        "--na-values", default="", metavar="TEXTS", help="comma-separated CSV texts that mean a missing value: NA,?"
    )
    parser.add_argument("--field-delim", metavar="CHARACTER", help="column separator of CSV (default: a comma)")
    return parser
