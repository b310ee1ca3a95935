"""The command `estimator`."""

from estimator_core._cli.main import command_names, command_parser, main

__all__ = [
    "command_names",
    "command_parser",
    "main",
]
