"""Compare the old and the new program on the same batches and weights. The exit status is 3 if they differ.

OLD and NEW are FILE[:FUNCTION]. The function (default: `proof`) accepts a model_dir and returns a dict with the keys
`estimator`, `train_input_fn` and `eval_input_fn`. The old program runs in the interpreter of --tf-python. The new
program receives its batches and initial weights. Predictions and metrics are compared at the start and at the end,
gradients at the first step, and loss and weights at every step. Then each step is repeated from the old weights, and
each update from the old gradients. A difference in only the free run is accumulated rounding. The JSON file of --names
lists names that differ: {"new name": "old name"}.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from estimator_core.cli import page_path
from estimator_core.errors import ArgumentError
from estimator_migration.cli.names import read_names

SUMMARY = "run the old and new program on the same batches and weights; exit status 3 if they differ"
DIFFER = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate prove`."""
    parser.add_argument("old", metavar="OLD", help="FILE[:FUNCTION] of the program of tf.estimator")
    parser.add_argument("new", metavar="NEW", help="FILE[:FUNCTION] of the program of estimator-core")
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--tf-python", metavar="PYTHON", help="the interpreter of the old program's environment")
    side.add_argument("--recorded", metavar="FOLDER", help="a folder that --record wrote, instead of running OLD")
    parser.add_argument("--record", metavar="FOLDER", help="folder to store the results of OLD")
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="training steps (default: 5)")
    parser.add_argument("--eval-batches", type=int, default=2, metavar="N", help="evaluation batches (default: 2)")
    parser.add_argument(
        "--tolerance", type=float, default=1e-5, metavar="X", help="tolerance of differences (default: 1e-05)"
    )
    parser.add_argument("--names", metavar="JSON", help="a JSON file: old names by new name")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument("--html", metavar="PAGE", type=page_path, help="write a page for a browser")


def run(args: argparse.Namespace) -> int:
    """Runs the command. Returns 3 if the programs differ."""
    from estimator_migration.proving import prove, record
    from estimator_migration.proving.report import html_page, text_report

    if args.steps < 1 or args.eval_batches < 1:
        raise ArgumentError("--steps and --eval-batches must be at least 1.")
    if not args.tolerance >= 0:
        raise ArgumentError(f"--tolerance must be a number of at least 0, given: {args.tolerance}.")
    if args.recorded and args.record:
        raise ArgumentError("--record stores the results of OLD, but --recorded does not run OLD. Leave one out.")
    names = read_names(args.names)
    with tempfile.TemporaryDirectory(prefix="estimator-prove-") as scratch:
        folder = args.recorded or args.record or scratch
        if args.tf_python:
            record(args.tf_python, args.old, folder, steps=args.steps, eval_batches=args.eval_batches)
        proof = prove(folder, args.new, names=names, tolerance=args.tolerance)
    if args.html:
        Path(args.html).parent.mkdir(parents=True, exist_ok=True)
        Path(args.html).write_text(html_page(proof), encoding="utf-8")
    print(json.dumps(proof.to_json(), indent=2) if args.json else text_report(proof))
    return DIFFER if proof.diverging else 0
