"""List every name of TensorFlow that programs use, with its line, its new name and the required change."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from estimator_core.cli import page_path
from estimator_migration.cli.files import TOO_DEEP, UnreadableError, python_files, read_file
from estimator_migration.cli.other_files import other_files

SUMMARY = "show the replacement of each name of TensorFlow; exit status 3 if something must change"
MUST_CHANGE = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate check`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a Python file, or a directory of them")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument("--html", metavar="PAGE", type=page_path, help="write a page for a browser, with the programs")


def run(args: argparse.Namespace) -> int:
    """Runs the command. Returns 3 if something must change."""
    from libcst import ParserSyntaxError

    from estimator_migration.checking import found_in
    from estimator_migration.reports import Program, html_page, text_report
    from estimator_migration.resolve import Resolver

    programs: list[Program] = []
    paths = python_files(args.files)
    for path in paths:
        source = ""
        try:
            source = read_file(path).source
            resolver = Resolver(source)
            others = tuple(other_files(resolver, path, paths))
            programs.append(Program(path=str(path), source=source, uses=tuple(found_in(resolver)), others=others))
        except (UnreadableError, ParserSyntaxError, RecursionError) as error:
            programs.append(Program(path=str(path), source=source, error=_reason(error)))
    if args.html:
        Path(args.html).parent.mkdir(parents=True, exist_ok=True)
        Path(args.html).write_text(html_page(programs), encoding="utf-8")
    print(json.dumps([each.to_json() for each in programs], indent=2) if args.json else text_report(programs))
    return MUST_CHANGE if any(each.must_change for each in programs) else 0


def _reason(error: Exception) -> str:
    if isinstance(error, UnreadableError):
        return str(error)
    if isinstance(error, RecursionError):
        return TOO_DEEP
    line = getattr(error, "raw_line", None)
    return f"line {line}: it is not Python 3" if line else "it is not Python 3"
