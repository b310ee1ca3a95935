"""Score files with an export. The memory does not depend on the number of rows.

    estimator predict runs/people/export --input people.csv --output scores.csv
    estimator predict runs/people/export --input 'rows/*.parquet' --output scores.parquet --keep id
    estimator predict runs/text/export/best --input rows.jsonl --output scores.jsonl --signature predict

Inputs are paths or glob patterns of CSV, Parquet, JSON lines, TFRecord or npz files. The suffix determines the kind.
The export, the inputs and the output may be URLs. The output is csv, parquet, jsonl or npz (only npz is kept in
memory). It has one column per class, and the predicted class as `classes`. It appears when it is complete. Rows have
the form of client requests: host transforms run before and after the model. Empty fields and bad rows are treated as in
training, if the export records it. Otherwise the first bad row ends the command, with an error that names file, row and
column.

--on ray and --on beam score on an engine, with the same results. Ray finds its cluster by RAY_ADDRESS. Beam accepts the
options of its runner (--beam-options "--runner=FlinkRunner --flink_master=..."). Workers read the export and the inputs
by the same paths or URLs.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING

from estimator_core.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from estimator_exporters.scoring.engines import Engine

#: Replacements for parts of reader messages: arguments of functions become options of the command line.
_OPTIONS = {
    'on_error="skip"': "--on-error skip",
    "no default (column_defaults)": "training filled in none",
    "; if the number is right, read the column as 'float32' (column_types)": "",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument(
        "export", metavar="DIRECTORY", help="an export, or a directory with exports (the newest is used)"
    )
    parser.add_argument(
        "--input", nargs="+", required=True, metavar="FILES", help="paths or glob patterns of files with rows"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help=".csv, .parquet, .jsonl or .npz")
    parser.add_argument("--signature", default="serving_default", help="signature to call (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, help="rows per batch (default: by the size of a row, at most 16384)")
    parser.add_argument("--keep", default="", metavar="NAMES", help="comma-separated input columns to copy")
    parser.add_argument(
        "--on-error", choices=("raise", "skip"), help="handling of bad rows (default: as in training, or raise)"
    )
    parser.add_argument("--field-delim", metavar="CHARACTER", help="column separator of CSV (default: as in training)")
    parser.add_argument(
        "--json", action="store_true", help="print JSON: the numbers of scored and skipped rows, and the output"
    )
    parser.add_argument("--on", choices=("ray", "beam"), help="the engine that scores (default: this process)")
    parser.add_argument("--workers", type=int, help="with --on ray: number of parallel actors (default: 1)")
    parser.add_argument("--beam-options", metavar="TEXT", help="with --on beam: options of its runner, as one string")
    parser.add_argument(
        "--staging", metavar="PLACE", help="with --on beam: directory or URL that its workers can write to"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
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
        field_delim=args.field_delim,
        engine=_engine(args),
    )
    try:
        done = score_files(job)
    except (ArgumentError, InputError) as error:
        told = _for_commands(str(error))
        if told == str(error):
            raise
        raise type(error)(told) from error
    for fault in done.shown:
        print(f"left out: {fault}", file=sys.stderr)
    if args.json:
        print(json.dumps({"rows": done.rows, "left_out": done.left_out, "output": args.output}))
        return 0
    left_out = f", {done.left_out} left out" if done.left_out else ""
    print(f"{done.rows} rows scored{left_out}; {args.output}")
    return 0


def _for_commands(message: str) -> str:
    """Returns a message in which the options of the command replace the arguments that readers name."""
    for argument, option in _OPTIONS.items():
        message = message.replace(argument, option)
    return message


def _engine(args: argparse.Namespace) -> Engine:
    from estimator_exporters.scoring.engines import beam_engine, local, ray_engine

    of_ray, of_beam = ("workers",), ("beam_options", "staging")
    for engine, names in (("ray", of_ray), ("beam", of_beam)):
        given = [name for name in names if getattr(args, name) is not None]
        if given and args.on != engine:
            raise ArgumentError(f"--{given[0].replace('_', '-')} is for --on {engine}.")
    if args.on == "ray":
        if args.workers is not None and args.workers < 1:
            raise ArgumentError(f"--workers must be positive, given: {args.workers}.")
        return ray_engine(workers=args.workers or 1)
    if args.on == "beam":
        return beam_engine(options=shlex.split(args.beam_options or ""), staging=args.staging)
    return local
