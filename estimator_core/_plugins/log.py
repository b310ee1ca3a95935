"""What is logged about plugins: the logger, and names on the lists that match nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from estimator_core._plugins.discovery import Candidate
from estimator_core._plugins.settings import PluginSettings

logger = logging.getLogger("estimator_core.plugins")


def warn_unmatched(settings: PluginSettings, installed: Sequence[Candidate]) -> None:
    """Logs the names on the allow and block lists that no installed plugin has."""
    for name in settings.unmatched((one.name, one.distribution) for one in installed):
        logger.warning("plugin %r is named on the allow or block list but is not installed", name)
