"""The actions of `estimator inputs`: inspect, schema, validate."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_inputs.inspect import report as reports
from estimator_inputs.inspect.detect import kind_of
from estimator_inputs.inspect.histogram import histogram_of, line_of
from estimator_inputs.inspect.page import page_of
from estimator_inputs.inspect.words import different_of, missing_of, short, statistics_of, type_of
from estimator_inputs.reading.files import find_files
from estimator_inputs.schema.contract import Schema
from estimator_inputs.schema.learn import schema_of
from estimator_inputs.schema.toml_file import written
from estimator_inputs.schema.validate import Limits, Validation, as_json, validate_rows
from estimator_inputs.statistics.files import CsvForm, rows_of_files
from estimator_inputs.statistics.gather import gathered

#: The exit code of `validate` if the rows violate the schema.
ANOMALIES = 3


def inspect(args: argparse.Namespace) -> int:
    """Prints statistics and rows of files."""
    if args.rows < 0:
        raise ArgumentError(f"--rows must be at least 0, given: {args.rows}.")
    limit = None if args.all else args.limit
    report = reports.inspect_files(args.files, kind=args.kind, limit=limit, rows=args.rows, form=_form(args))
    if args.html:
        Path(args.html).parent.mkdir(parents=True, exist_ok=True)
        Path(args.html).write_text(page_of(report), encoding="utf-8")
    if args.json:
        print(json.dumps(reports.as_json(report)))
        return 0
    found = report.statistics
    which = "all" if found.all_rows else "the first"
    bad = f", not counting {found.bad_rows:,} bad ones" if found.bad_rows else ""
    print(f"{report.kind}, {report.files} file(s), {report.bytes:,} bytes; {which} {found.rows:,} rows{bad}")
    for text in found.bad:
        print(f"bad: {text}")
    print()
    columns = [
        [one.name, type_of(one), missing_of(one), different_of(one), line_of(histogram_of(one)), statistics_of(one)]
        for one in found.columns.values()
    ]
    _print_table([["column", "type", "missing", "different", "histogram", "statistics"], *columns])
    if args.rows and found.rows:
        print()
        rows = zip(*report.first.values(), strict=True)
        _print_table([[short(value) for value in row] for row in [list(report.first), *rows]])
    return 0


def schema(args: argparse.Namespace) -> int:
    """Learns a schema, and prints or writes it."""
    if args.output and Path(args.output).exists() and not args.force:
        raise ArgumentError(f"{args.output} exists and may have been edited: name another file, or pass --force.")
    learned = _learned(args, args.files, args.kind, _form(args))
    if args.output:
        learned.write(args.output)
    if args.json:
        kinds = {name: feature.kind for name, feature in learned.features.items()}
        print(json.dumps({"schema": args.output, "label": learned.label, "columns": kinds}))
        return 0
    if not args.output:
        print(written(learned), end="")
        return 0
    print(f"{args.output}: {len(learned.features)} columns. Edit what they allow, then run: estimator inputs validate")
    return 0


def validate_files(args: argparse.Namespace) -> int:
    """Compares files with a schema."""
    if (args.schema is None) == (args.against is None):
        raise ArgumentError("Give either --schema SCHEMA or --against FILE to compare the rows with.")
    limits = Limits(
        jensen_shannon=args.max_jensen_shannon,
        l_infinity=args.max_l_infinity,
        outside=args.max_outside,
        unknown=args.max_unknown,
        bad_rows=args.max_bad_rows,
    )
    of_rows = of_others = _form(args)
    if (
        args.against
        and of_rows != CsvForm()
        and "csv" in (kinds := (_kind(args.files, args.kind), _kind(args.against, None)))
    ):
        of_rows, of_others = (of_rows if kind == "csv" else CsvForm() for kind in kinds)  # one of them may not be CSV
    wanted = Schema.read(args.schema) if args.schema is not None else _learned(args, args.against, None, of_others)
    batches = rows_of_files(args.files, args.limit, args.kind, of_rows)
    ignored = [name for name in args.ignore.split(",") if name]
    found = validate_rows(batches, wanted, limits=limits, limit=args.limit, label=not args.no_label, ignore=ignored)
    if args.json:
        print(json.dumps(as_json(found)))
    else:
        _print_validation(found)
    return ANOMALIES if found.anomalies else 0


def _form(args: argparse.Namespace) -> CsvForm:
    return CsvForm(na_values=tuple(filter(None, args.na_values.split(","))), field_delim=args.field_delim)


def _kind(files: Sequence[str], kind: str | None) -> str:
    return kind or kind_of(find_files(files)[0])


def _learned(args: argparse.Namespace, files: Sequence[str], kind: str | None, form: CsvForm) -> Schema:
    batches = rows_of_files(files, args.limit, kind, form)
    return schema_of(gathered(batches, limit=args.limit), label=args.label)


def _print_validation(found: Validation) -> None:
    anomalies = found.anomalies
    print(f"{found.statistics.rows:,} rows, {len(anomalies)} anomal{'y' if len(anomalies) == 1 else 'ies'}")
    if anomalies:
        print()
        _print_table([["column", "kind", "what"], *([one.column, one.kind, one.text] for one in anomalies)])
    if found.distances:
        print()
        rows = [
            [one.column, f"{one.jensen_shannon:.3f}", f"{one.l_infinity:.3f}", one.of, f"{one.chance_js:.3f}"]
            for one in found.distances
        ]
        _print_table([["column", "Jensen-Shannon", "L-infinity", "at", "by chance"], *rows])


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
