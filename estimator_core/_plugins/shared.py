"""The plugins that are used if none are given."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from estimator_core._plugins.facade import Plugins
from estimator_core._plugins.policy import policy_files

_in_use: ContextVar[Plugins | None] = ContextVar("estimator_core_plugins_in_use", default=None)


def default_plugins() -> Plugins:
    """The installed plugins as the environment selects them.

    The object stays the same as long as the import path, the `ESTIMATOR_` variables and the place of the policy do not
    change. So a process scans once, and nothing has to be reset.
    """
    settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("ESTIMATOR_")))
    return _plugins(settings, tuple(sys.path), tuple(policy_files(os.environ, Path.cwd())))


@lru_cache(maxsize=8)
def _plugins(environ: tuple[tuple[str, str], ...], path: tuple[str, ...], policies: tuple[str, ...]) -> Plugins:
    return Plugins(environ=dict(environ))


@contextlib.contextmanager
def using_plugins(plugins: Plugins | None) -> Generator[None]:
    """Makes these the plugins of the code within, such as a model_fn that calls `ec.module`; None changes nothing."""
    token = _in_use.set(plugins or _in_use.get())
    try:
        yield
    finally:
        _in_use.reset(token)


def plugins_in_use() -> Plugins:
    """The plugins of the Estimator whose model_fn runs, otherwise the installed ones."""
    return _in_use.get() or default_plugins()
