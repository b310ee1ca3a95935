"""Tells the shell of a notebook how to show things; nothing happens anywhere else."""

from __future__ import annotations

import sys
from typing import Any


def shell() -> Any | None:
    """The shell of the notebook this process serves; None in a terminal or a program.

    Example:
        >>> shell() is None
        True
    """
    ipython = sys.modules.get("IPython")  # a process that has not imported it serves no notebook
    found = None if ipython is None else ipython.get_ipython()
    return found if hasattr(found, "kernel") else None


def register() -> None:
    """Registers the tables of this package in a notebook."""
    found = shell()
    if found is None:
        return
    from estimator_core.config import RunConfig
    from estimator_hooks.notebook import tables

    formatter = found.display_formatter.formatters["text/html"]
    formatter.for_type(RunConfig, tables.config_html)
    formatter.for_type(dict, tables.metrics_html)


def register_run(estimator: Any) -> None:
    """Adds the table of an estimator and of its history."""
    found = shell()
    if found is None:
        return
    from estimator_hooks.notebook import tables

    formatter = found.display_formatter.formatters["text/html"]
    formatter.for_type(type(estimator), tables.estimator_html)
    formatter.for_type(type(estimator.history), tables.history_html)
