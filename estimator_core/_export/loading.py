"""`ec.export.load`: an export, whatever its format."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from estimator_core._export.contract import LoadedExport
from estimator_core._export.directories import latest_export
from estimator_core._plugins import Plugins, default_plugins
from estimator_core._storage.copies import local_copy
from estimator_core.errors import ExportError, PluginError

_log = logging.getLogger("estimator_core")


def load(path: str | os.PathLike[str], *, plugins: Plugins | None = None) -> LoadedExport:
    """Reads an export.

    Args:
        path: an export directory, or one that holds exports (the newest is used); or the URL of an export, which is
            copied to this machine until the process ends.
        plugins: the plugin registry; default: the installed plugins.

    Returns:
        An object whose `signatures[name](**arrays)` returns numpy arrays by name.

    Raises:
        ExportError: there is no export, it is damaged, or no installed format knows it.
    """
    registry = default_plugins() if plugins is None else plugins
    here = local_copy(path, registry)
    candidates = [here]
    newest = latest_export(here)
    if newest is not None:
        candidates.append(Path(newest))
    formats, broken = _formats(registry)
    for directory in candidates:
        for known in formats:
            if known.recognizes(directory):
                return known.load(directory)
    if broken:
        raise ExportError(f"{path} cannot be read by {[known.name for known in formats]}; broken: {'; '.join(broken)}")
    if not formats:
        raise ExportError(
            f"{path} cannot be read: no export format is installed. {registry.explain('format', 'stablehlo')}"
        )
    raise ExportError(
        f"{path} holds no export that an installed format knows ({', '.join(known.name for known in formats)}). "
        "Give the time-stamped directory that export_saved_model returned."
    )


def _formats(registry: Plugins) -> tuple[list[Any], list[str]]:
    """The formats that work here, and why others do not. A broken format does not prevent reading other exports."""
    found: list[Any] = []
    broken: list[str] = []
    for name in registry.names("format"):
        try:
            found.append(registry.get("format", name)())
        except PluginError as error:
            _log.warning("export format %s is left out, because its plugin is broken: %s", name, error)
            broken.append(str(error))
    return found, broken
