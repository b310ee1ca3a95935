"""What the options of every command do while a command runs."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager

from estimator_core._cli.plugin_switches import changed_environment, plugin_variables
from estimator_core._plugins.discovery import installed_packages

#: Set to "1" by --quiet, for what shows progress here and in processes that the command starts.
QUIET = "ESTIMATOR_QUIET"


@contextmanager
def applied(args: argparse.Namespace) -> Generator[None]:
    """Puts the options that were given into effect; an environment that changes is put back."""
    given = vars(args)
    changes = plugin_variables(args)
    if "every_log_level" in given:
        _log(args.every_log_level)
        changes[QUIET] = "1" if args.every_log_level in ("warning", "error") else ""
    if "every_no_color" in given:
        changes["NO_COLOR"] = "1"
    with changed_environment(changes):
        yield


def show_lines_of(command: object) -> None:
    """Shows the log of a command like that of the core. Its package may be another than that of its plugin."""
    package = str(getattr(command, "__name__", type(command).__module__)).partition(".")[0]
    logging.getLogger(package).setLevel(logging.getLogger("estimator_core").level)


def _log(level: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    for name in ("estimator_core", *installed_packages()):  # libraries below us log for their own developers
        logging.getLogger(name).setLevel(level.upper())
