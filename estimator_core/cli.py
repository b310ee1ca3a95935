"""The command `estimator`."""

from estimator_core._cli.main import command_names, command_parser, main
from estimator_core._cli.path_options import local_path, page_path

__all__ = [
    "command_names",
    "command_parser",
    "local_path",
    "main",
    "page_path",
]
