"""Look into files of examples: schema, statistics and a few rows.

    estimator inputs inspect train.csv
    estimator inputs inspect 'data/part-*.tfrecord' --rows 2
    estimator inputs inspect train.parquet --json

Bad rows are counted and told in the log.
"""

from __future__ import annotations

import argparse
import json
from typing import Any


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = actions.add_parser("inspect", help="schema, statistics and a few rows of files")
    inspect.add_argument("files", nargs="+", metavar="FILE", help="files or patterns of one kind")
    kinds = ("csv", "jsonl", "parquet", "tfrecord", "array_record")
    inspect.add_argument("--kind", choices=kinds, help="of the files (default: told by name or first bytes)")
    inspect.add_argument("--rows", type=int, default=5, help="rows to show (default: 5)")
    inspect.add_argument("--limit", type=int, default=100_000, help="rows that count for statistics (default: 100000)")
    inspect.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Prints the report."""
    from dataclasses import asdict

    from estimator_core.errors import ArgumentError
    from estimator_inputs.inspect.report import inspect_files

    if args.limit < 1 or args.rows < 0:
        raise ArgumentError(f"--limit must be at least 1 and --rows at least 0, given: {args.limit} and {args.rows}.")
    report = inspect_files(args.files, kind=args.kind, limit=args.limit, rows=args.rows)
    if args.json:
        print(json.dumps(asdict(report)))
        return 0
    which = "all" if report.all_rows else "the first"
    bad = f", beside {report.bad_rows} bad ones" if report.bad_rows else ""
    print(f"{report.kind}, {report.files} file(s), {report.bytes:,} bytes; {which} {report.rows:,} rows{bad}")
    print()
    for line in _table([["column", "type", "statistics"], *map(_column, report.columns.items())]):
        print(line)
    if args.rows and report.rows:
        print()
        shown = [list(report.first), *zip(*report.first.values(), strict=True)]
        for line in _table([[_short(value) for value in row] for row in shown]):
            print(line)
    return 0


def _column(item: tuple[str, Any]) -> list[str]:
    name, facts = item
    shape = "x".join(map(str, facts["shape"]))
    kind = f"{facts['type']}[{shape}]" if shape else facts["type"]
    if facts["type"] == "string":
        number = f"{facts['distinct']} different" if "distinct" in facts else f"over {facts['more_than']} different"
        common = ", ".join(f"{_short(text)!r} {n}" for text, n in facts["most_common"])
        return [name, kind, f"{number}: {common}" + (f"; {facts['empty']} empty" if facts["empty"] else "")]
    if "mean" not in facts:
        return [name, kind, "no value"]
    text = f"{facts['min']:.6g} to {facts['max']:.6g}, mean {facts['mean']:.6g}, deviation {facts['deviation']:.4g}"
    return [name, kind, text + (f"; {facts['nan']} nan" if facts["nan"] else "")]


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 30 else text[:27] + "..."


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
