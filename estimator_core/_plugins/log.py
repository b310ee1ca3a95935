"""What is logged about plugins: the logger, and names on the lists that match nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from estimator_core._plugins.discovery import Candidate
from estimator_core._plugins.options import hint_for_entry_point
from estimator_core._plugins.records import PluginRecord
from estimator_core._plugins.settings import PluginSettings, option_variable

logger = logging.getLogger("estimator_core.plugins")


def warn_unmatched(settings: PluginSettings, installed: Sequence[Candidate]) -> None:
    """Logs the names on the allow and block lists that no installed distribution has."""
    for name in settings.unmatched(one.identity for one in installed):
        hint = hint_for_entry_point(name, installed)
        logger.warning("plugin %r is named on a list of plugins but is not installed%s", name, hint)


def warn_of_options(environ: Iterable[str], records: Sequence[PluginRecord]) -> None:
    """Logs the variables that set an option which no plugin has. Nobody knows those of a plugin that did not load."""
    known = [option_variable(record.owner, option.name) for record in records for option in record.options]
    unread = tuple(option_variable(record.owner, "") for record in records if not record.usable)
    for variable in environ:
        if variable.startswith("ESTIMATOR_OPTION_") and variable not in known and not variable.startswith(unread):
            close = get_close_matches(variable, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            logger.warning("%s (or --plugin-option) sets no option of an installed plugin%s", variable, hint)
