"""Runs a module that is a command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from estimator_core._cli.command_parser import CommandParser, applied, show_lines_of
from estimator_core.errors import PluginError


def module_parser(module: Any, program: str) -> CommandParser:
    """Returns the parser of a command.

    Args:
        module: a module with `configure(parser)`, `run(args)` and a docstring, which is the description.
        program: the command line before the arguments, for the usage text.
    """
    parser = CommandParser(
        prog=program, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.configure(parser)
    return parser


def run_module(module: object, program: str, arguments: Sequence[str]) -> int:
    """Parses the arguments of a command, runs it and returns its exit code.

    Args:
        module: see `module_parser`.
        program: the command line before the arguments.
        arguments: the arguments.
    """
    return run_parsed(module, module_parser(module, program).parse_args(arguments))


def run_parsed(module: Any, args: argparse.Namespace) -> int:
    """Runs a command with the options of all commands among its arguments, and returns its exit code."""
    with applied(args):
        show_lines_of(module)
        status = module.run(args)
        if status is not None and not isinstance(status, int):
            raise PluginError(f"run(args) of {module!r} returned {status!r}; it must return an exit status: 0, 1, ...")
        return int(status or 0)
