"""The plugins used where none are handed over."""

from __future__ import annotations

import os
import sys
from functools import lru_cache

from estimator_core.plugins.facade import Plugins


def default_plugins() -> Plugins:
    """The installed plugins as the environment selects them.

    The same object as long as neither the import path nor an `ESTIMATOR_` variable changes, so that a process scans
    once and nothing has to be reset.
    """
    settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("ESTIMATOR_")))
    return _plugins(settings, tuple(sys.path))


@lru_cache(maxsize=8)
def _plugins(environ: tuple[tuple[str, str], ...], path: tuple[str, ...]) -> Plugins:
    return Plugins(environ=dict(environ))
