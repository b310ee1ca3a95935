"""Score files with an export, in memory that does not grow with the rows.

    estimator predict runs/people/export --input people.csv --output scores.csv
    estimator predict runs/people/export --input 'rows/*.parquet' --output scores.parquet --keep id
    estimator predict runs/text/export/best --input rows.jsonl --output scores.jsonl --signature predict

Inputs are CSV, Parquet, JSON lines, TFRecord and npz files, by their suffix; files, glob patterns, or several of them.
The export, the inputs and the output may be URLs.
The output is csv, parquet, jsonl or npz (which alone is held in memory); it has one column a class, and the predicted
class as `classes`. It appears when it is whole. Rows are what clients send: host transforms run before and after. Empty
fields and bad rows are treated as in training where the export tells; otherwise the first bad row ends it, with file,
row and column.
"""

from __future__ import annotations

import argparse
import sys

from estimator_core.errors import ArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument(
        "export", metavar="DIRECTORY", help="an export, or a directory with exports (the newest is used)"
    )
    parser.add_argument("--input", nargs="+", required=True, metavar="FILES", help="paths or glob patterns of rows")
    parser.add_argument("--output", required=True, metavar="FILE", help=".csv, .parquet, .jsonl or .npz")
    parser.add_argument("--signature", default="serving_default", help="signature to call (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, help="rows at a time (default: by the size of a row, at most 16384)")
    parser.add_argument("--keep", default="", metavar="NAMES", help="input columns to copy, with commas between")
    parser.add_argument(
        "--on-error", choices=("raise", "skip"), help="what becomes of bad rows (default: as in training, or raise)"
    )


def run(args: argparse.Namespace) -> int:
    """Reads, scores, writes."""
    from estimator_exporters.scoring.run import Job, score_files

    if args.batch_size is not None and args.batch_size < 1:
        raise ArgumentError(f"--batch-size must be positive, given: {args.batch_size}.")
    job = Job(
        export=args.export,
        inputs=tuple(args.input),
        output=args.output,
        signature=args.signature,
        batch_size=args.batch_size,
        keep=tuple(name for name in args.keep.split(",") if name),
        on_error=args.on_error,
    )
    done = score_files(job)
    for fault in done.shown:
        print(f"left out: {fault}", file=sys.stderr)
    left_out = f", {done.left_out} left out" if done.left_out else ""
    print(f"{done.rows} rows scored{left_out}; {args.output}")
    return 0
