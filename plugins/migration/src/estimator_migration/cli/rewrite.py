"""Prints the mechanical part of a migration as a diff, with a marked note (# MIGRATE:) at every other place."""

from __future__ import annotations

import argparse

from estimator_core.errors import ArgumentError
from estimator_migration.cli.files import python_files

SUMMARY = "the mechanical part as a diff, and a marked note at every other place"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate rewrite`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a Python file, or a directory of them")
    parser.add_argument("--write", action="store_true", help="change the files; without it nothing is written")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    from libcst import ParserSyntaxError

    from estimator_migration.rewriting import rewrite

    for path in python_files(args.files):
        source = path.read_text(encoding="utf-8")
        try:
            done = rewrite(source)
        except ParserSyntaxError as error:
            raise ArgumentError(
                f"{path} is not Python 3: {error.message}. `2to3` or `futurize` makes it one."
            ) from None
        print(done.diff(source, str(path)), end="")
        if args.write:
            path.write_text(done.source, encoding="utf-8")
        print(
            f"# {path}: {done.replaced} places changed, {done.notes} notes{'' if args.write else ', nothing written'}."
        )
    return 0
