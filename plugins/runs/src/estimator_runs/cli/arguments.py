"""The arguments that `estimator sweep` and `estimator crossval` share."""

from __future__ import annotations

import argparse

from estimator_core.cli import local_path


def add_file_arguments(parser: argparse.ArgumentParser, *, table: str, example: str) -> None:
    """Adds FILE, `--dir`, `--set` and `--json`.

    Args:
        parser: the parser of the command.
        table: the table of the configuration file that the command reads. The default folder ends with its name.
        example: the example of a setting for `--set`.
    """
    parser.add_argument("file", metavar="FILE", help=f"a TOML or YAML file with [{table}]")
    parser.add_argument(
        "--dir", metavar="DIR", type=local_path, help=f"output directory (default: runs/<name of the file>-{table})"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"a value that overrides that of the file, for example {example}",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
