"""What is logged about plugins: the logger, and names on the lists that match nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from estimator_core._plugins.discovery import Candidate
from estimator_core._plugins.options import hint_for_entry_point
from estimator_core._plugins.settings import PluginSettings

logger = logging.getLogger("estimator_core.plugins")


def warn_unmatched(settings: PluginSettings, installed: Sequence[Candidate]) -> None:
    """Logs the names on the allow and block lists that no installed distribution has."""
    for name in settings.unmatched(one.identity for one in installed):
        hint = hint_for_entry_point(name, installed)
        logger.warning("plugin %r is named on the allow or block list but is not installed%s", name, hint)
