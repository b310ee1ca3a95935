"""Score a file with an export, batch by batch.

    estimator predict runs/digits/export/final --input rows.npz --output scores.npz
    estimator predict runs/text/export/best --input rows.jsonl --output scores.jsonl --signature predict

Input and output are npz (arrays by name), jsonl (an object a row) or csv (a column a feature; features of one example
are
single numbers or strings), by their suffix. Rows are what clients send: host transforms run before and after.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator_core.errors import ArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument(
        "export", metavar="DIRECTORY", help="an export, or a directory with exports (the newest is used)"
    )
    parser.add_argument("--input", type=Path, required=True, help="rows.npz, rows.jsonl or rows.csv")
    parser.add_argument("--output", type=Path, required=True, help="where the outputs go: .npz, .jsonl or .csv")
    parser.add_argument("--signature", default="serving_default", help="signature to call (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="rows at a time (default: 64)")


def run(args: argparse.Namespace) -> int:
    """Reads, scores, writes."""
    import estimator_core as ec
    from estimator_exporters.cli.row_files import check_output, read_rows, write_rows

    if args.batch_size < 1:
        raise ArgumentError(f"--batch-size must be positive, given: {args.batch_size}.")
    check_output(args.output)
    signatures = ec.export.load(args.export).raw_signatures
    if args.signature not in signatures:
        raise ArgumentError(f"There is no signature {args.signature!r}. Signatures: {sorted(signatures)}.")
    signature = signatures[args.signature]
    rows = read_rows(args.input, signature.inputs)
    count = len(next(iter(rows.values())))
    batches = [
        signature(**{name: array[start : start + args.batch_size] for name, array in rows.items()})
        for start in range(0, count, args.batch_size)
    ]
    write_rows(args.output, batches, count)
    print(f"{count} rows scored; {args.output}")
    return 0
