"""Registers the tables of this package with the shell of a notebook. Without a notebook, it does nothing."""

from __future__ import annotations

import sys
from typing import Any


def shell() -> Any | None:
    """Returns the shell of the notebook that this process serves, or None in a terminal or a program.

    Example:
        >>> shell() is None
        True
    """
    ipython = sys.modules.get("IPython")  # a process that has not imported it does not serve a notebook
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
    """Registers the table of an estimator and of its history."""
    found = shell()
    if found is None:
        return
    from estimator_hooks.notebook import tables

    formatter = found.display_formatter.formatters["text/html"]
    formatter.for_type(type(estimator), tables.estimator_html)
    formatter.for_type(type(estimator.history), tables.history_html)
