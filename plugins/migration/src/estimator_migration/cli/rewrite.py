"""Print the mechanical part of a migration as a diff, with a marked note (# MIGRATE:) at every other place."""

from __future__ import annotations

import argparse

from estimator_core.errors import ArgumentError
from estimator_migration.cli.files import TOO_DEEP, UnreadableError, python_files, read_file

SUMMARY = "print the mechanical changes as a diff, with a marked note at every other place"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator migrate rewrite`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a Python file, or a directory of them")
    parser.add_argument("--write", action="store_true", help="change the files; without this option nothing is written")


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        ArgumentError: files that cannot be read or written, or that are not Python 3; all others are rewritten.
    """
    from libcst import ParserSyntaxError

    from estimator_migration.rewriting import rewrite

    left: list[str] = []
    for path in python_files(args.files):
        try:
            file = read_file(path)
            done = rewrite(file.source)
        except UnreadableError as error:
            left.append(f"{path} cannot be read: {error}")
            continue
        except RecursionError:
            left.append(f"{path} cannot be read: {TOO_DEEP}.")
            continue
        except ParserSyntaxError as error:
            left.append(f"{path} is not Python 3: {error.message}. `2to3` or `futurize` converts it.")
            continue
        try:
            if args.write:
                file.write(done.source)
        except OSError as error:
            left.append(f"{path} cannot be written: {error.strerror}")
            continue
        print(done.diff(file.source, str(path)), end="")
        print(
            f"# {path}: {done.replaced} places changed, {done.notes} notes{'' if args.write else ', nothing written'}."
        )
    if left:
        raise ArgumentError("\n".join(left))
    return 0
