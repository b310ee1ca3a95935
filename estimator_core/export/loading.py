"""`ec.export.load`: an export, whatever its format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from estimator_core.errors import ExportError
from estimator_core.export.contract import LoadedExport
from estimator_core.export.directories import latest_export
from estimator_core.plugins import Plugins, default_plugins


def load(path: str | os.PathLike[str], *, plugins: Plugins | None = None) -> LoadedExport:
    """Reads an export.

    Args:
        path: an export directory, or one that holds exports (the newest is taken).
        plugins: the plugin registry; default: the installed plugins.

    Returns:
        An object whose `signatures[name](**arrays)` gives numpy arrays by name.

    Raises:
        ExportError: there is no export, it is damaged, or no installed format knows it.
    """
    registry = default_plugins() if plugins is None else plugins
    candidates = [Path(path)]
    newest = latest_export(path)
    if newest is not None:
        candidates.append(Path(newest))
    formats = [_instance(registry.get("format", name)) for name in registry.names("format")]
    for directory in candidates:
        for known in formats:
            if known.recognizes(directory):
                return known.load(directory)
    if not formats:
        raise ExportError(
            f"{path} cannot be read: no export format is installed. {registry.explain('format', 'stablehlo')}"
        )
    raise ExportError(
        f"{path} holds no export that an installed format knows ({', '.join(known.name for known in formats)}). "
        "Give the time-stamped directory that export_saved_model returned."
    )


def _instance(component: Any) -> Any:
    return component() if isinstance(component, type) else component
